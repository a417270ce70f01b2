"""Models on disk: plan, reuse, fetch, verify, publish. A file is a model only once ``manifest.json`` says so."""
