#!/usr/bin/env python3
"""A runner of a Grapnel coordinator, in Python without other packages: docs/runner-protocol.md.

    GRAPNEL_TOKEN=grp_… python3 runner.py --server http://127.0.0.1:8420 --name py-1 --label zone=eu

It executes procedural blueprints: those with a command, and those without one that HANDLERS names. SIGTERM and
SIGINT let it finish the run that it has, and end.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

PROTOCOL = 1
WAIT = 20  # seconds that a request for work waits at the coordinator


class Stale(Exception):
    """Another runner has the run, or it has ended: nothing more is reported."""


class Coordinator:
    """The requests of a runner."""

    def __init__(self, url, token, name, lease):
        self.url, self.token, self.name, self.lease = url.rstrip("/"), token, name, lease

    def call(self, method, path, body=None, query=(), timeout=15):
        """Sends a request and returns the response. A connection that fails raises OSError."""
        request = urllib.request.Request(
            self.url + "/runner/" + path + ("?" + urllib.parse.urlencode(query) if query else ""),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.token, "Grapnel-Runner": self.name, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")
            if error.code == 409:
                raise Stale(detail) from None
            if error.code >= 500 or error.code == 429:
                raise OSError(f"{method} {path}: {error.code}: {detail}") from None  # try again
            raise RuntimeError(f"{method} {path}: {error.code}: {detail}") from None

    def claim(self, limit, tag, labels=()):
        """Waits for signals that differ from those of the tag, and for runs."""
        query = [("limit", limit), ("signals_tag", tag), ("wait_seconds", WAIT), ("lease_seconds", self.lease), ("type", "procedural")]
        claim = self.call("GET", "runs", query=query + [("label", label) for label in labels], timeout=WAIT + 15)
        if claim["protocol"] != PROTOCOL:
            sys.exit(f"the coordinator speaks version {claim['protocol']} of the protocol, and this runner version {PROTOCOL}")
        return claim


class Run:
    """A run that this runner has."""

    def __init__(self, coordinator, claimed):
        self.coordinator, self.claimed, self.lease = coordinator, claimed, claimed["lease_seconds"]
        self.parameters, self.blueprint = claimed["parameters"], claimed["blueprint"]
        self.ended = threading.Event()  # the program has ended
        self.interrupted = threading.Event()  # the program must end
        self.stop_reason = None  # set if the coordinator asks for the end
        self.stale = False  # set if another runner has the run

    def post(self, what, **body):
        body["epoch"] = self.claimed["epoch"]
        return self.coordinator.call("POST", f"runs/{self.claimed['run_id']}/{what}", body)

    def event(self, kind, data):
        """Reports an event, which those who watch the run see."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        self.post("events", events=[{"event_type": kind, "time": now, "data": data}])

    def interrupt(self, reason=None, stale=False):
        self.stop_reason, self.stale = self.stop_reason or reason, self.stale or stale
        self.interrupted.set()

    def keep(self):
        """Renews the lease every third of its time, until the program has ended."""
        renewed = time.monotonic()
        while not self.ended.wait(self.lease / 3):
            try:
                self.heed(self.post("renew", lease_seconds=self.lease)["signals"])
                renewed = time.monotonic()
            except Stale:
                return self.interrupt(stale=True)
            except OSError as error:
                if time.monotonic() - renewed > self.lease:  # another runner may have it by now
                    return self.interrupt(stale=True)
                print("renewing failed, and is tried again:", error, file=sys.stderr)

    def listen(self):
        """Waits for signals until the program has ended. A request with limit=0 returns when there are other signals."""
        tag = ""
        while not self.ended.is_set():
            try:
                claim = self.coordinator.claim(0, tag)
                tag = claim.get("signals_tag", "")
                self.heed(claim["signals"])
            except OSError:
                self.ended.wait(1)

    def heed(self, signals):
        for s in signals:
            if s["run"] == self.claimed["run_id"] and s["kind"] == "cancel":
                self.interrupt(reason=s.get("text") or "cancelled")

    def execute(self):
        """Executes the run, and reports how it has ended."""
        command = self.blueprint.get("command")
        if self.claimed.get("begun") and not (command or {}).get("repeat"):
            return self.report("failed", error="a runner ended while the program ran, and the program may not run again")
        self.post("started")
        threading.Thread(target=self.keep, daemon=True).start()
        threading.Thread(target=self.listen, daemon=True).start()
        try:
            result = run_program(self) if command else HANDLERS[self.claimed["agent_name"]](self)
        except Exception as error:  # whatever it is, the run has failed
            outcome, body = "failed", {"error": str(error) or type(error).__name__}
        else:
            outcome, body = "completed", {"result_data": result} if isinstance(result, dict) else {"result_text": str(result)}
        finally:
            self.ended.set()
        if self.stale:
            return None
        if self.stop_reason:
            outcome, body = "stopped", {"reason": self.stop_reason}
        return self.report(outcome, **body)

    def report(self, outcome, **body):
        """Reports the end until the coordinator answers: it may be reported twice."""
        until = time.monotonic() + self.lease
        while True:
            try:
                return self.post(outcome, **body)
            except OSError as error:
                if time.monotonic() > until:
                    raise
                print("reporting failed, and is tried again:", error, file=sys.stderr)
                time.sleep(1)


def run_program(run):
    """Runs the command of a blueprint with its environment and no other. Its output is the result."""
    command = run.blueprint["command"]
    env = dict(command.get("env", {}), GRAPNEL_RUN=run.claimed["run_id"], GRAPNEL_IDEMPOTENCY_KEY=run.claimed["run_id"] + "/command")
    program = subprocess.Popen(
        command["argv"], cwd=command.get("dir"), env=env, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )

    def end_program():
        run.interrupted.wait()
        try:
            os.killpg(program.pid, signal.SIGKILL)  # and all that it has started
        except ProcessLookupError:
            pass

    threading.Thread(target=end_program, daemon=True).start()
    try:
        output, errors = program.communicate(json.dumps(run.parameters).encode(), timeout=command.get("timeout_seconds") or 600)
    except subprocess.TimeoutExpired:
        raise RuntimeError("the program took too long") from None
    finally:
        run.interrupted.set()
    if program.returncode != 0:
        raise RuntimeError(f"the program exited with {program.returncode}: {errors.decode(errors='replace').strip()}")
    try:
        result = json.loads(output)
    except ValueError:
        return output.decode(errors="replace")
    return result if isinstance(result, dict) else output.decode(errors="replace")


def word_count(run):
    """Counts words: a blueprint without a command that is called word-count."""
    words = str(run.parameters.get("text", "")).split()
    run.event("counted", {"words": len(words)})
    return {"words": len(words)}


HANDLERS = {"word-count": word_count}


def main():
    flags = argparse.ArgumentParser(description="Execute procedural runs of a Grapnel coordinator.")
    flags.add_argument("--server", default=os.environ.get("GRAPNEL_SERVER", "http://127.0.0.1:8420"))
    flags.add_argument("--name", default=f"python-{os.getpid()}", help="no other runner with the token has it")
    flags.add_argument("--lease", type=int, default=30, help="seconds that a run stays here when this process dies")
    flags.add_argument("--label", action="append", default=[], help="NAME=VALUE, for the demands of runs")
    o = flags.parse_args()
    token = os.environ.get("GRAPNEL_TOKEN")
    if not token:
        sys.exit("GRAPNEL_TOKEN is not set: it must have a token with the role runner")
    coordinator = Coordinator(o.server, token, o.name, o.lease)
    labels = o.label + [f"coordinator.command/{name}=yes" for name in HANDLERS]
    draining, busy = threading.Event(), threading.Event()

    def drain(*_):
        draining.set()
        if not busy.is_set():  # a request for work is given up: a run that it may have got comes back when its lease expires
            sys.exit(0)

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, drain)
    print("working", flush=True)
    tag = ""
    while not draining.is_set():
        try:
            claim = coordinator.claim(1, tag, labels)
            tag = claim.get("signals_tag", "")
            for claimed in claim["runs"]:
                busy.set()
                Run(coordinator, claimed).execute()
        except Stale as error:
            print("the run is no longer here:", error, file=sys.stderr)
        except RuntimeError as error:
            sys.exit(str(error))
        except OSError as error:
            print("no answer, and asked again:", error, file=sys.stderr)
            draining.wait(1)
        finally:
            busy.clear()


if __name__ == "__main__":
    main()
