# A client of a coordinator that knows nothing but its OpenAPI file. It submits a run, executes it as a runner, lets a person answer a
# question of it, and reads what became of it. Requests and responses must be as the file describes them.
import json, re, sys, urllib.error, urllib.parse, urllib.request

base, token = sys.argv[1:3]
spec = json.load(urllib.request.urlopen(base + "/openapi.json"))
operations = {o["operationId"]: (m.upper(), p, o) for p, ms in spec["paths"].items() for m, o in ms.items()}


def check(schema, value, at):
    while "$ref" in schema:
        found = spec
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        schema = found
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    is_a = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
    if types and not any(isinstance(value, is_a[t]) and not (isinstance(value, bool) and t in ("integer", "number")) for t in types):
        sys.exit(f"{at}: {value!r} is no {types}")
    if value is not None and value not in schema.get("enum", [value]):
        sys.exit(f"{at}: {value!r} is none of {schema['enum']}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(schema.get("items", {}), item, f"{at}[{i}]")
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", []):
            if name not in value:
                sys.exit(f"{at}: {name} is missing")
        for name, member in value.items():
            if name not in properties and more is False:
                sys.exit(f"{at}: {name} is not described")
            check(properties.get(name, more if isinstance(more, dict) else {}), member, f"{at}.{name}")


def call(operation, body=None, expect=None, as_token=token, **values):
    method, path, o = operations[operation]
    query, headers = [], {}
    for p in o.get("parameters", []):
        value = values.pop(p["name"].replace("-", "_"), None)
        if value is None:
            if p.get("required"):
                sys.exit(f"{operation}: {p['name']} is required")
        elif p["in"] == "path":
            path = path.replace("{" + p["name"] + "}", urllib.parse.quote(value, safe=""))
        elif p["in"] == "query":
            query.append((p["name"], value))
        else:
            headers[p["name"]] = value
    if values:
        sys.exit(f"{operation}: has no parameters {list(values)}")
    if body is not None:
        media = o["requestBody"]["content"]
        headers["Content-Type"] = next(iter(media))
        if expect is None:
            check(media[headers["Content-Type"]]["schema"], body, operation)
    headers["Authorization"] = "Bearer " + as_token
    url = base + path + ("?" + urllib.parse.urlencode(query) if query else "")
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as e:
        response = e
    text = response.read().decode()
    if response.status >= 400 and response.status != expect:
        sys.exit(f"{operation}: {response.status}: {text}")
    described = o["responses"].get(str(response.status)) or o["responses"]["default"]
    content = described.get("content", {})
    if not content:
        return text
    media = response.headers["Content-Type"].split(";")[0]
    if media not in content:
        sys.exit(f"{operation}: {media} is none of {list(content)}")
    if not re.search(r"[/+]json$", media):
        return text
    value = json.loads(text)
    check(content[media].get("schema", {}), value, f"{operation}: {response.status}")
    return value


def equal(got, want):
    if got != want:
        sys.exit(f"got {got!r}, want {want!r}")


call("create-blueprint", {"name": "mailer", "type": "procedural"})
worker = call("create-token", {"name": "mailers", "role": "runner"})["token"]
run = call("submit-run", {"agent_name": "mailer", "parameters": {"to": "ann"}}, Idempotency_Key="mail 1")["run_id"]
equal(call("submit-run", {"agent_name": "mailer", "parameters": {"to": "ann"}}, Idempotency_Key="mail 1")["run_id"], run)


def claim():
    mine = dict(as_token=worker, Grapnel_Runner="py", label="coordinator.command/mailer=yes")
    found = call("claim-runs", **mine)["runs"]
    equal([r["run_id"] for r in found], [run])
    call("report-started", {"epoch": found[0]["epoch"]}, as_token=worker, Grapnel_Runner="py", id=run)
    return found[0]


first = claim()
question = {"id": "send", "reason": "Send it?", "tool": "mail", "arguments": {"to": "ann"}}
call("park-run", {"epoch": first["epoch"], "questions": [question]}, as_token=worker, Grapnel_Runner="py", id=run)
waiting = call("get-run", id=run)
equal(waiting["status"], "waiting")
asked = waiting["waits_for"][0]
yes = {"verdict": "approve", "covers": asked["questions"], "arguments": '{"to": "bob"}'}
call("answer", {"verdict": "approve"}, expect=400, id=run, question=asked["wait"])
call("answer", yes, id=run, question=asked["wait"])
call("answer", yes, expect=409, id=run, question=asked["wait"])
again = claim()
equal([(a["id"], a["approved"], a["arguments"]) for a in again["answers"]], [("send", True, {"to": "bob"})])
late = {"epoch": first["epoch"], "result_text": "too late"}
call("report-completed", late, expect=409, as_token=worker, Grapnel_Runner="py", id=run)
call("report-completed", {"epoch": again["epoch"], "result_text": "sent"}, as_token=worker, Grapnel_Runner="py", id=run)
call("set-deny-tools", {"on": True, "reason": "fire"})
equal(call("read-deny-tools")["on"], True)
call("submit-run", {"agent_name": "nobody"}, expect=422)
done = call("get-run", id=run)
equal((done["status"], done["result_text"]), ("completed", "sent"))
names = {"/blueprints/{name}": "mailer", "/blueprints/{name}/versions": "mailer", "/sessions/{id}": done["session_id"]}
for operation, (method, path, o) in operations.items():  # the others that read
    if method == "GET" and not path.startswith("/runner/") and "text/event-stream" not in o["responses"]["200"]["content"]:
        missing = 422 if path == "/runs/{id}/case" else 0  # no hook has decided anything
        call(operation, expect=missing, **{p["name"]: names.get(path, run) for p in o.get("parameters", []) if p["in"] == "path"})
print("done")
