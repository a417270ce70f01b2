"""The engine family llama.cpp: its programs, their probes, its models' memory."""
