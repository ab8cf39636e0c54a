"""StableHLO as text: its ops and attributes as xDSL reads them, in the generic form and in the one that tools print.

No op has rules of its own here: `frontends/stablehlo` looks at what it lowers, and refuses what it does not know.
"""

from __future__ import annotations

from fuseline.ir.hlo.dialects import HLO_DIALECTS

__all__ = ["HLO_DIALECTS"]
