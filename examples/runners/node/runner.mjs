#!/usr/bin/env node
// A runner of a Grapnel coordinator, in Node.js (20 or newer) without packages: docs/runner-protocol.md.
//
//   GRAPNEL_TOKEN=grp_… node runner.mjs --server http://127.0.0.1:8420 --name node-1 --label zone=eu
//
// It executes procedural blueprints: those with a command, and those without one that `handlers` names. SIGTERM and
// SIGINT let it finish the run that it has, and end.

import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const PROTOCOL = 1;
const WAIT = 20; // seconds that a request for work waits at the coordinator

const { values: flags } = parseArgs({
  options: {
    server: { type: "string", default: process.env.GRAPNEL_SERVER ?? "http://127.0.0.1:8420" },
    name: { type: "string", default: `node-${process.pid}` }, // no other runner with the token has it
    lease: { type: "string", default: "30" }, // seconds that a run stays here when this process dies
    label: { type: "string", multiple: true, default: [] }, // NAME=VALUE, for the demands of runs
  },
});

const lease = Number(flags.lease);

// Stale is thrown when another runner has the run, or when it has ended: nothing more is reported.
class Stale extends Error {}

// Refused is thrown for a request that is wrong, so that repeating it does not help.
class Refused extends Error {}

// call sends a request and returns the response. Errors other than Stale and Refused may pass.
async function call(method, path, { body, query = [], timeout = 15, signal } = {}) {
  const url = new URL(`runner/${path}`, flags.server.replace(/\/*$/, "/"));
  url.search = new URLSearchParams(query);
  const signals = [AbortSignal.timeout(timeout * 1000)];
  if (signal) signals.push(signal);
  const response = await fetch(url, {
    method,
    headers: {
      Authorization: `Bearer ${process.env.GRAPNEL_TOKEN}`, "Grapnel-Runner": flags.name, "Content-Type": "application/json",
    },
    body: body && JSON.stringify(body),
    signal: AbortSignal.any(signals),
    redirect: "manual",
  });
  const text = await response.text();
  if (response.ok) return text ? JSON.parse(text) : null;
  const message = `${method} ${path}: ${response.status}: ${text}`;
  if (response.status === 409) throw new Stale(message);
  if (response.status >= 500 || response.status === 429) throw new Error(message);
  throw new Refused(message);
}

// claim waits for signals that differ from those of the tag, and for runs.
async function claim(limit, tag, labels, signal) {
  const query = [["limit", limit], ["signals_tag", tag], ["wait_seconds", WAIT], ["lease_seconds", lease], ["type", "procedural"]];
  for (const label of labels) query.push(["label", label]);
  const answer = await call("GET", "runs", { query, timeout: WAIT + 15, signal });
  if (answer.protocol !== PROTOCOL) {
    throw new Refused(`the coordinator speaks version ${answer.protocol} of the protocol, and this runner version ${PROTOCOL}`);
  }
  return answer;
}

// Run is a run that this runner has.
class Run {
  stopReason = null; // set if the coordinator asks for the end
  stale = false; // set if another runner has the run
  #ended = new AbortController(); // the program has ended
  #interrupted = new AbortController(); // the program must end

  constructor(claimed) {
    this.claimed = claimed;
    this.parameters = claimed.parameters;
    this.command = claimed.blueprint.command;
  }

  get interrupted() { return this.#interrupted.signal; }

  post(what, body = {}) {
    return call("POST", `runs/${this.claimed.run_id}/${what}`, { body: { ...body, epoch: this.claimed.epoch } });
  }

  // event reports an event, which those who watch the run see.
  event(type, data) {
    return this.post("events", { events: [{ event_type: type, time: new Date().toISOString(), data }] });
  }

  interrupt({ reason = null, stale = false }) {
    this.stopReason ??= reason;
    this.stale ||= stale;
    this.#interrupted.abort();
  }

  // keep renews the lease every third of its time, until the program has ended.
  async keep() {
    for (let renewed = Date.now(); await this.#pause(lease / 3); ) {
      try {
        this.heed((await this.post("renew", { lease_seconds: lease })).signals);
        renewed = Date.now();
      } catch (error) {
        // After the time of the lease, another runner may have the run.
        if (error instanceof Stale || error instanceof Refused || Date.now() - renewed > lease * 1000) return this.interrupt({ stale: true });
        console.error("renewing failed, and is tried again:", error.message);
      }
    }
  }

  // listen waits for signals until the program has ended. A request with limit=0 returns when there are other signals.
  async listen() {
    for (let tag = ""; !this.#ended.signal.aborted; ) {
      try {
        const answer = await claim(0, tag, [], this.#ended.signal);
        tag = answer.signals_tag ?? "";
        this.heed(answer.signals);
      } catch {
        await this.#pause(1);
      }
    }
  }

  heed(signals) {
    for (const s of signals) {
      if (s.run === this.claimed.run_id && s.kind === "cancel") this.interrupt({ reason: s.text || "cancelled" });
    }
  }

  // #pause waits, and returns false if the program has ended.
  async #pause(seconds) {
    await sleep(seconds * 1000, null, { signal: this.#ended.signal }).catch(() => {});
    return !this.#ended.signal.aborted;
  }

  // execute executes the run, and reports how it has ended.
  async execute() {
    if (this.claimed.begun && !this.command?.repeat) {
      return this.report("failed", { error: "a runner ended while the program ran, and the program may not run again" });
    }
    await this.post("started");
    const background = [this.keep(), this.listen()];
    let outcome = "completed";
    let body;
    try {
      const result = await (this.command ? runProgram(this) : handlers[this.claimed.agent_name](this));
      body = isObject(result) ? { result_data: result } : { result_text: String(result) };
    } catch (error) {
      [outcome, body] = ["failed", { error: error.message }];
    }
    this.#ended.abort();
    await Promise.all(background);
    if (this.stale) return;
    if (this.stopReason !== null) [outcome, body] = ["stopped", { reason: this.stopReason }];
    return this.report(outcome, body);
  }

  // report reports the end until the coordinator answers: it may be reported twice.
  async report(outcome, body) {
    for (const until = Date.now() + lease * 1000; ; await sleep(1000)) {
      try {
        return await this.post(outcome, body);
      } catch (error) {
        if (error instanceof Stale || error instanceof Refused || Date.now() > until) throw error;
        console.error("reporting failed, and is tried again:", error.message);
      }
    }
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

// runProgram runs the command of a blueprint with its environment and no other. Its output is the result.
function runProgram(run) {
  const { argv, dir, env = {}, timeout_seconds: timeout = 600 } = run.command;
  const id = run.claimed.run_id;
  return new Promise((resolve, reject) => {
    const program = spawn(argv[0], argv.slice(1), {
      cwd: dir, env: { ...env, GRAPNEL_RUN: id, GRAPNEL_IDEMPOTENCY_KEY: `${id}/command` }, detached: true, // in a group of its own
    });
    let [output, errors, late] = ["", "", false];
    const end = () => {
      try {
        process.kill(-program.pid, "SIGKILL"); // and all that it has started
      } catch { /* it has ended */ }
    };
    const timer = setTimeout(() => { late = true; end(); }, timeout * 1000);
    run.interrupted.addEventListener("abort", end, { once: true });
    program.stdout.setEncoding("utf8").on("data", (text) => { output += text; });
    program.stderr.setEncoding("utf8").on("data", (text) => { errors += text; });
    program.stdin.on("error", () => {}); // the program does not read its input
    program.stdin.end(JSON.stringify(run.parameters));
    program.on("error", reject);
    program.on("close", (code, signal) => {
      clearTimeout(timer);
      if (late) return reject(new Error("the program took too long"));
      if (code !== 0) return reject(new Error(`the program exited with ${code ?? signal}: ${errors.trim()}`));
      try {
        const result = JSON.parse(output);
        resolve(isObject(result) ? result : output);
      } catch {
        resolve(output);
      }
    });
  });
}

// handlers execute blueprints without a command, by their names.
const handlers = {
  "word-count": async (run) => {
    const words = String(run.parameters.text ?? "").split(/\s+/).filter(Boolean).length;
    await run.event("counted", { words });
    return { words };
  },
};

async function main() {
  if (!process.env.GRAPNEL_TOKEN) throw new Refused("GRAPNEL_TOKEN is not set: it must have a token with the role runner");
  const labels = [...flags.label, ...Object.keys(handlers).map((name) => `coordinator.command/${name}=yes`)];
  const draining = new AbortController();
  for (const s of ["SIGTERM", "SIGINT"]) process.once(s, () => draining.abort());
  console.log("working");
  for (let tag = ""; !draining.signal.aborted; ) {
    try {
      const answer = await claim(1, tag, labels, draining.signal);
      tag = answer.signals_tag ?? "";
      for (const claimed of answer.runs) await new Run(claimed).execute();
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (draining.signal.aborted) break;
      console.error("tried again:", error.message);
      await sleep(1000, null, { signal: draining.signal }).catch(() => {});
    }
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
