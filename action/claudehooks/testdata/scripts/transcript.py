#!/usr/bin/env python3
"""Continues until the transcript has an answer of a tool."""
import json, sys
event = json.load(sys.stdin)
kinds = []
with open(event["transcript_path"]) as f:
    for line in f:
        content = json.loads(line)["message"]["content"]
        kinds += ["text"] if isinstance(content, str) else [part["type"] for part in content]
if not event["stop_hook_active"]:
    print(json.dumps({"decision": "block", "reason": "seen: " + " ".join(kinds)}))
