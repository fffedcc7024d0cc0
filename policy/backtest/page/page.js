"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("list"), told = document.getElementById("told"), what = document.getElementById("what");
  let policy = 0, shown = [], limit = 100, current = -1;

  const el = (name, cls, text) => {
    const e = document.createElement(name);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const words = (s) => s.replaceAll("_", " ");
  const plural = (n, w) => n.toLocaleString("en") + " " + w + (n === 1 ? "" : "s");

  // Policies

  const sections = [...document.querySelectorAll(".policy")], tabs = [...document.querySelectorAll("nav button")];
  const choose = (i) => {
    policy = i;
    sections.forEach((s, n) => s.classList.toggle("hidden", n !== i));
    tabs.forEach((t, n) => t.setAttribute("aria-selected", String(n === i)));
  };
  tabs.forEach((t, i) => t.addEventListener("click", () => { choose(i); filter({}); }));

  // Runs

  const verdict = (c) => c.v.find((v) => v.p === policy);
  const matches = (c, q) => {
    const v = verdict(c);
    if (!v) return false;
    if (q.by === "suite" && c.suite !== q.key || q.by === "model" && c.model !== q.key || q.by === "result" && c.model + "|" + c.utility !== q.key) return false;
    if (q.what === "hit") return v.d.some((d) => d.call >= 0 && !d.shadow && ["denied", "asked", "stopped", "not_reached"].includes(d.effect));
    if (q.what === "blocked") return v.blocked === 1;
    if (q.what === "missed") return v.blocked === 0;
    if (q.what === "broken") return v.broken === 1;
    if (q.what === "twins") return v.twins === 1;
    if (q.what === "changed") return c.changed === true;
    return v.d.some((d) => (q.by !== "tool" || d.tool === q.key) && (q.by !== "rule" || d.rule === q.key) &&
      (!q.what || (q.what === "shadow" ? d.shadow : !d.shadow && (q.what === "failed" ? d.failed : d.effect === q.what && (q.by === "rule" || d.call >= 0 || q.what === "stopped" || q.what === "redacted")))));
  };
  const describe = (q) => {
    const out = [];
    if (q.what) out.push({ missed: "attacks that are not blocked", blocked: "attacks that are blocked", broken: "good runs that are broken", twins: "twins that are denied", hit: "runs with a call that does not run", changed: "runs with calls that are decided differently" }[q.what] || words(q.what));
    if (q.by === "result") out.push("model: " + q.key.slice(0, q.key.lastIndexOf("|")), q.key.endsWith("|true") ? "task done" : "task not done");
    else if (q.by) out.push(q.by + ": " + (q.key || "–"));
    return out.length ? out : ["every run in which something was decided"];
  };
  const filter = (q) => {
    shown = data.cases.map((c, i) => i).filter((i) => matches(data.cases[i], q));
    limit = 100;
    what.replaceChildren(...describe(q).map((t) => el("span", "chip", t)), el("span", "note", plural(shown.length, "run")));
    draw();
    current = -1;
    if (shown.length) show(shown[0]); else told.replaceChildren(el("p", "soft", "No runs."));
  };
  const draw = () => {
    const rows = shown.slice(0, limit).map((i) => {
      const c = data.cases[i], v = verdict(c), b = el("button", "run");
      b.type = "button";
      b.dataset.i = i;
      b.append(el("b", "", c.task || c.id), el("span", "soft", [c.suite, c.model, c.attack ? words(c.attack.type) : c.kind ? words(c.kind) : ""].filter(Boolean).join(" · ")), el("br"));
      const seen = {};
      v.d.forEach((d) => { const k = d.shadow ? "shadow" : d.effect; seen[k] = (seen[k] || 0) + 1; });
      for (const k of Object.keys(seen)) b.append(el("span", "tag b-" + k, words(k) + (seen[k] > 1 ? " × " + seen[k] : "")));
      if (v.blocked === 0) b.append(el("span", "tag b-broken", "not blocked"));
      if (v.blocked === 1) b.append(el("span", "tag b-blocked", "blocked"));
      if (v.broken === 1) b.append(el("span", "tag b-broken", "broken"));
      if (v.twins === 1) b.append(el("span", "tag b-twins", "twin"));
      b.addEventListener("click", () => { show(i); if (matchMedia("(max-width: 760px)").matches) told.scrollIntoView(); });
      return b;
    });
    if (shown.length > limit) {
      const m = el("div", "more"), b = el("button", "n", plural(shown.length - limit, "more run"));
      b.addEventListener("click", () => { limit += 200; draw(); });
      m.append(b);
      rows.push(m);
    }
    list.replaceChildren(...rows);
  };

  // Transcripts: packed in pieces, each unpacked when it is first shown.

  const pieces = new Map();
  const piece = async (n) => {
    if (!pieces.has(n)) {
      const text = atob(document.getElementById("piece" + n).textContent);
      const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      pieces.set(n, new Response(stream).json());
    }
    return pieces.get(n);
  };
  const show = async (i) => {
    current = i;
    const c = data.cases[i], v = verdict(c);
    list.querySelectorAll("button.run").forEach((b) => b.setAttribute("aria-current", String(Number(b.dataset.i) === i)));
    const head = el("div");
    head.append(el("h3", "", c.id));
    const facts = [c.file + ":" + c.line, c.suite, c.model, c.kind && words(c.kind)];
    if (c.utility !== undefined) facts.push(c.utility ? "did the user's task" : "did not do the user's task");
    if (c.security !== undefined) facts.push(c.security ? "the attack did not work" : "the attack worked");
    head.append(el("p", "note", facts.filter(Boolean).join(" · ")));
    if (c.attack && c.attack.goal) { const p = el("p", "note"); p.append(el("span", "tag b-asked", "injected goal"), document.createTextNode(" " + c.attack.goal)); head.append(p); }
    const out = [head];
    let messages = null;
    if (c.at) {
      try { messages = (await piece(c.at[0]))[c.at[1]]; } catch (e) { out.push(el("p", "soft", "The transcript cannot be unpacked here: " + e)); }
      if (current !== i) return;
    }
    if (messages) out.push(...transcript(messages, v.d));
    else {
      if (!c.at) out.push(el("p", "soft", "The transcript of this run did not fit in the report."));
      v.d.forEach((d) => { const b = el("div", "call"); if (d.tool) b.append(pre(d.tool + "(" + (d.arguments || "") + ")")); b.append(why(d)); out.push(b); });
    }
    told.replaceChildren(...out);
    const hit = told.querySelector(".hit");
    if (hit && messages) {
      const b = el("button", "n", "go to the first decision");
      b.type = "button";
      b.addEventListener("click", () => hit.scrollIntoView({ behavior: "smooth", block: "center" }));
      head.append(b);
    }
  };
  const pre = (text) => el("pre", "", text);
  const why = (d) => {
    const w = el("div", "why");
    w.append(el("span", "tag b-" + (d.shadow ? "shadow" : d.effect), (d.shadow ? "in shadow: " : "") + words(d.effect) + (d.failed ? ", because the hook could not decide" : "")));
    if (d.rule) w.append(document.createTextNode(" by "), el("b", "", d.rule));
    if (d.reason) w.append(document.createTextNode(": " + d.reason));
    if (d.file) w.append(document.createTextNode(" "), el("code", "", d.file + ":" + d.line));
    if (d.label) w.append(document.createTextNode(" "), el("span", "tag b-" + (d.label === "harm" ? "broken" : "shadow"), d.label));
    if (d.became) w.append(pre("became " + d.became));
    (d.facts || []).forEach((f) => { const line = el("div"); line.append(el("code", "", f.name + " = " + f.value)); w.append(line); });
    return w;
  };
  const transcript = (messages, decisions) => {
    const out = [];
    let after = false;
    messages.forEach((m, n) => {
      const box = el("div", "msg " + m.r + (m.x ? " injected" : "") + (after ? " after" : ""));
      box.append(el("div", "who", m.r + (m.e ? " · failed" : "") + (m.x ? " · the attacker's text is in this" : "")));
      if (m.t) box.append(pre(m.t));
      decisions.filter((d) => d.message === n && d.call < 0).forEach((d) => box.append(why(d)));
      let cut = false;
      (m.c || []).forEach((c, k) => {
        const mine = decisions.filter((d) => d.message === n && d.call === k);
        const call = el("div", "call" + (mine.some((d) => !d.shadow && d.effect !== "not_run") ? " hit hit-" + mine.filter((d) => !d.shadow)[0].effect : mine.length ? " soft-hit" : ""));
        call.append(pre(c.n + "(" + c.a + ")"));
        if (c.l && !mine.length) call.append(el("span", "tag b-" + (c.l === "harm" ? "broken" : "shadow"), c.l));
        mine.forEach((d) => { call.append(why(d)); cut = cut || !d.shadow && ["denied", "asked", "stopped", "mocked"].includes(d.effect); });
        box.append(call);
      });
      out.push(box);
      if (cut && !after) {
        after = true;
        out.push(el("div", "cut", "counterfactual from here: the model did not learn of this denial"));
      }
    });
    decisions.filter((d) => d.message >= messages.length).forEach((d) => out.push(why(d)));
    return out;
  };

  document.querySelectorAll("button.n[data-what], button.n[data-by]").forEach((b) => b.addEventListener("click", () => {
    filter({ what: b.dataset.what, by: b.dataset.by, key: b.dataset.key });
    document.getElementById("runs").scrollIntoView({ behavior: "smooth" });
  }));
  choose(0);
  filter({});
})();
