// Keeps a page up to date and adds keys. Pages are complete without it.
(() => {
	"use strict";
	const same = { createHTML: (text) => text };
	const policy = window.trustedTypes ? window.trustedTypes.createPolicy("grapnel", same) : same;
	const main = document.getElementById("main");
	const byID = (id) => document.getElementById(id);

	// Puts pieces that the server sent in the place of those with the same ID. The first line names where new ones go.
	function put(data) {
		const end = data.indexOf("\n");
		const into = data.slice(0, end);
		const page = new DOMParser().parseFromString(policy.createHTML(data.slice(end + 1)), "text/html");
		for (const piece of [...page.body.children]) {
			const known = piece.id && byID(piece.id);
			if (known) replace(known, piece);
			else if (into) {
				const list = byID(into.replace("^", ""));
				if (into[0] === "^") list.prepend(piece);
				else list.append(piece);
			}
			if (!known || (piece.id === "rows" && piece.firstElementChild)) for (const id of ["none", "nothing"]) byID(id)?.remove();
		}
		age();
	}

	// What a person opened stays open, what they typed stays there, and the focus stays where it is.
	function replace(known, piece) {
		const details = piece.querySelectorAll("details");
		known.querySelectorAll("details").forEach((old, i) => {
			if (details[i]) details[i].open = old.open;
		});
		for (const field of known.querySelectorAll("textarea[id], input[id]")) {
			const next = piece.querySelector("#" + CSS.escape(field.id));
			if (next) [next.value, next.checked] = [field.value, field.checked];
		}
		const active = document.activeElement;
		const alike = (e) => [...e.querySelectorAll(active.localName)];
		const at = known.contains(active) ? alike(known).indexOf(active) : -1;
		const caret = [active.selectionStart, active.selectionEnd];
		known.replaceWith(piece);
		if (at < 0 && known !== active) return;
		const next =
			known === active ? piece
			: active.id ? piece.querySelector("#" + CSS.escape(active.id))
			: active.getAttribute("href") ? alike(piece).find((e) => e.getAttribute("href") === active.getAttribute("href"))
			: alike(piece)[at];
		next?.focus({ preventScroll: true });
		if (next?.matches("textarea, input:not([type])")) next.setSelectionRange(...caret);
	}

	function age() {
		for (const time of document.querySelectorAll("time[datetime]")) {
			const s = (Date.now() - Date.parse(time.dateTime)) / 1000;
			time.textContent =
				s < 5 ? "just now"
				: s < 60 ? `${Math.floor(s)} s ago`
				: s < 3600 ? `${Math.floor(s / 60)} min ago`
				: s < 172800 ? `${Math.floor(s / 3600)} h ago`
				: `${Math.floor(s / 86400)} days ago`;
		}
	}
	setInterval(age, 10000);

	// One stream a page, none while nobody looks.
	let source, last;
	function listen() {
		if (document.hidden || !main.dataset.live) {
			source?.close();
			source = null;
		} else if (!source) {
			const at = new URL(main.dataset.live, location.href);
			if (last) at.searchParams.set("after", last);
			source = new EventSource(at);
			source.addEventListener("piece", (e) => {
				last = e.lastEventId || last;
				put(e.data);
			});
			source.addEventListener("error", (e) => {
				if (e.target !== source || source.readyState !== EventSource.CLOSED) return;
				source = null;
				setTimeout(listen, 10000); // a browser does not ask again after a refusal
			});
		}
	}
	document.addEventListener("visibilitychange", listen);
	listen();

	// Checks a form while a person types. Its fields and its text are one document: each follows the other, and what is wrong is at the fields.
	const editor = document.querySelector("form[data-check]");
	if (editor) {
		const { text, was } = editor.elements;
		const fields = byID("fields");
		let timer, sent = 0, last = text.value;
		const check = async () => {
			const mine = ++sent;
			const body = new URLSearchParams(new FormData(editor));
			body.set("do", "live");
			const reply = await fetch(editor.action, { method: "POST", body }).catch(() => null);
			const now = reply?.ok && reply.headers.get("Content-Type") === "application/json" ? await reply.json() : null;
			if (!now || mine !== sent) return;
			if (now.was !== null && text.value === last) {
				if (text.value !== now.was) text.value = now.was;
				[was.value, last] = [now.was, text.value];
			} else if (now.was !== null && !fields.contains(document.activeElement)) {
				fields.replaceChildren(...new DOMParser().parseFromString(policy.createHTML(now.fields), "text/html").body.childNodes);
				if (now.merged) text.value = now.was;
				[was.value, last] = [now.was, text.value];
			}
			for (const place of editor.querySelectorAll("[id^='m-']")) {
				const wrong = now.mistakes[place.id.slice(2)] ?? "";
				if (place.textContent !== wrong) place.textContent = wrong;
				const field = byID("f-" + place.id.slice(2));
				if (wrong) field?.setAttribute("aria-invalid", "true");
				else field?.removeAttribute("aria-invalid");
			}
			byID("said").textContent = now.said;
		};
		editor.addEventListener("input", () => {
			sent++;
			clearTimeout(timer);
			timer = setTimeout(check, 400);
		});
	}

	const keys = [
		["j, k", "the next and the previous row, question or decision"], ["Enter", "opens it"],
		["a", "to the button that approves: Enter confirms"], ["r", "to the reason for a rejection"],
		["/", "search"], ["g n, g r, g a, g i", "now, runs, agents, inbox"], ["Esc", "out of a field"], ["?", "this list"],
	];
	function help() {
		let box = byID("keys");
		if (!box) {
			box = Object.assign(document.createElement("dialog"), { id: "keys", className: "card", ariaLabel: "Keys" });
			const list = box.appendChild(document.createElement("dl"));
			for (const [name, does] of keys) {
				list.appendChild(document.createElement("dt")).textContent = name;
				list.appendChild(document.createElement("dd")).textContent = does;
			}
			document.body.append(box);
		}
		if (box.open) box.close();
		else box.showModal();
	}

	const places = { n: "/ui/", r: "/ui/runs", a: "/ui/agents", i: "/ui/inbox" };
	let go = false;
	document.addEventListener("keydown", (e) => {
		const isField = e.target.closest("input, textarea, select");
		if (e.key === "Escape" && isField) (isField.closest("[data-card]") ?? main).focus();
		if (e.ctrlKey || e.metaKey || e.altKey || isField) return;
		const search = document.querySelector("[data-slash]");
		if (go && places[e.key]) location.assign(places[e.key]);
		else if (e.key === "?") help();
		else if (byID("keys")?.open) return;
		else if (e.key === "/" && search) {
			e.preventDefault();
			search.focus();
		} else if (e.key === "j" || e.key === "k") {
			const rows = [...document.querySelectorAll("[data-key], [data-card], .lanes a")];
			const now = document.activeElement.closest("[data-card]") ?? document.activeElement;
			const at = rows.indexOf(now) + (e.key === "j" ? 1 : -1);
			rows[Math.max(0, Math.min(at, rows.length - 1))]?.focus();
		} else if (e.key === "Enter" && document.activeElement.matches("[data-card]")) {
			document.activeElement.querySelector("h2 a")?.click();
		} else if (e.key === "a" || e.key === "r") { // Enter confirms
			const card = document.activeElement.closest("[data-card]");
			const to = card?.querySelector(e.key === "a" ? "[value=approve]" : "[data-reason]");
			if (to) {
				e.preventDefault();
				to.focus();
			}
		}
		go = e.key === "g";
	});
})();
