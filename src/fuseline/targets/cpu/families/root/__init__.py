"""What the kernels of dispatches with a root op share: workgroups, and how a root's values start and leave."""
