package bash

import "slices"

// empties records the files that a command without output replaces: : > f, cat /dev/null > f.
func (w *walker) empties(c ctx, words []Word, redirs []Redirect, index int) {
	if printsNothing(c, words) {
		w.recordEmpty(c, redirs, index)
	}
}

// emptiesAfter works like empties for a group or a function that ran the commands from the given one on.
func (w *walker) emptiesAfter(c ctx, from int, redirs []Redirect, index int) {
	if len(redirs) > 0 && !slices.ContainsFunc(w.out.Commands[from:], func(k Command) bool { return k.Kind != Function && !printsNothing(ctx{}, k.Words) }) {
		w.recordEmpty(c, redirs, index)
	}
}

func (w *walker) recordEmpty(c ctx, redirs []Redirect, index int) {
	for _, r := range redirs {
		if (r.Op == ">" || r.Op == ">|" || r.Op == "&>") && r.FD != "2" { // errors may be written
			w.file(c, r.Target, Empties, index)
		}
	}
}

// printsNothing reports whether a command certainly has no output.
func printsNothing(c ctx, words []Word) bool {
	if len(words) == 0 {
		return true
	}
	args := words[1:]
	is := func(texts ...string) bool {
		return slices.EqualFunc(args, texts, func(a Word, text string) bool { return a.Is(text) })
	}
	switch words[0].Text {
	case ":", "true", "false":
		return true
	case "exec": // exec > f
		return len(args) == 0
	case "echo":
		return is("-n") || is("-n", "")
	case "printf":
		return is("") || is("%s") || is("%s", "")
	case "head":
		return len(args) > 0 && (args[0].Is("-c0") || args[0].Is("-n0")) || len(args) > 1 && (args[0].Is("-c") || args[0].Is("-n")) && args[1].Is("0")
	case "cat", "sort", "tac":
		return len(args) > 0 && !hasFunc(args, func(a Word) bool { return !a.Is("/dev/null") }) || len(args) == 0 && c.in.isEmpty()
	}
	return false
}

// isEmpty reports whether the input is certainly empty.
func (in input) isEmpty() bool {
	return in.kind == fromFile && in.text == "/dev/null" || in.kind == piped && in.text == "" && len(in.also) == 0
}

// walkCopy also records files that /dev/null replaces: cp /dev/null f.
func walkCopy(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "r*w"}, g)
	target, found := g.last("t", "target-directory")
	if sources := g.operands; len(sources) > 1 && !found && slices.ContainsFunc(sources, func(a Word) bool { return a.Is("/dev/null") }) {
		w.file(c, sources[len(sources)-1], Empties, k.index)
	} else if found && hasFunc(sources, func(a Word) bool { return a.Is("/dev/null") }) {
		w.file(c, target.value, Empties, k.index)
	}
}

// walkUnzip records the folder into which unzip unpacks.
func walkUnzip(w *walker, c ctx, k call, g given) {
	w.tool(c, k, tool{operands: "r"}, g)
	if !g.has("l", "p", "t", "v", "z", "Z", "d") {
		w.file(c, literalWord(".", w.place(k.at)), Writes, k.index)
	}
}
