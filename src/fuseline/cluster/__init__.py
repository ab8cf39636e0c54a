"""Work on the machines of a Dask cluster, for one that is there or one of this machine's own processes.

connect ──Client──> team (whose workers fit) ──> jobs (one at a time each; those of lost workers elsewhere)
                                                  ├── evaluator   trials of a search
                                                  └── model_rows  rows of tables over models
"""
