import json, sys
event = json.load(sys.stdin)
# tool_result in a comment
if "error" in event["tool_output"]:
    print(json.dumps({"result": "block"}))
