#!/usr/bin/env python3
"""Appends the event to log.jsonl in the project."""
import json, os, sys
with open(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "log.jsonl"), "a") as f:
    f.write(json.dumps(json.load(sys.stdin)) + "\n")
