"""The worker: evaluate a project again and again, each trace once it has settled."""
