package bash

import (
	"strings"
)

// walkParallel builds command lines from the template and input of parallel, and walks them as shell text. The
// template loses its quotes on the way, so both readings are walked: the words as they are, and the text that they
// form.
func walkParallel(w *walker, c ctx, k call, _ given) {
	g := parseOptions(k.args(),
		"+0a<B:C:d:E:gh:I:i?j:kL:l?mN:n:P:pqrS:s:tTuU:vVxXe?D:",
		"arg-file< arg-file-sep: arg-sep: bar basefile: bg block: block-size: cat cleanup colsep: color color-failed compress compress-program$ "+
			"decompress-program$ csv ctag ctagstring: "+
			"delay: delimiter: dry-run eof? embed env: eta fg fifo filter: files files0 group group-by: halt: halt-on-error: header: hgrp hostgroups "+
			"jobs: joblog> keep-order latest-line limit$ "+
			"line-buffer line-buffered link load: controlmaster tollef max-args: max-chars: max-line-length-allowed max-lines? max-procs: "+
			"max-replace-args: memfree: memsuspend: minversion: no-notice "+
			"no-run-if-empty nonall noswap null number-of-cpus number-of-cores number-of-sockets number-of-threads onall open-tty output-as-files "+
			"parens: pipe pipe-part pipepart plain plus process-slot-var: "+
			"profile: progress quote quiet recend: recstart: record-env recstart: regexp remove-rec-sep replace? replacement-string? resume "+
			"resume-failed retries: results> retry-failed return: round-robin round "+
			"rpl: rsync-opts: rrs semaphore semaphore-name: seqreplace: session shebang shebang-wrap shell-completion: shell-quote shuf silent "+
			"skip-first-line sql: sql-master: sql-and-worker: sql-worker: ssh$ "+
			"sshdelay: sshlogin: sshloginfile< slf: slotreplace: shard: show-limits tag tagstring: tee template: term-seq: termseq: tempdir: tmpdir: "+
			"timeout: tmux tmuxpane total-jobs: transfer transferfile: trc: trim: "+
			"trace ungroup unquote unsafe use-compress-program: use-cores-instead-of-threads use-cpus-instead-of-cores use-sockets-instead-of-threads "+
			"verbose version wd: workdir: will-cite xapply xargs max-args: exit help man citation nice: verbose arg-sep:")
	w.options(c, k, g)
	if g.doubt {
		w.opaque(c, k.at, k.index, OpaqueOption, "it is unknown where the command of parallel begins")
	}
	for _, o := range g.operands {
		if o.Kind == Literal && strings.HasPrefix(o.Text, "::::") {
			break // files follow
		}
		o.claim()
	}
	template, lists, sure := g.operands, [][]Word(nil), true
	for i, o := range g.operands {
		if o.Kind == Literal && strings.HasPrefix(o.Text, ":::") {
			template = g.operands[:i]
			for _, more := range g.operands[i:] {
				switch {
				case more.Is(":::") || more.Is(":::+"):
					lists = append(lists, nil)
				case more.Is("::::") || more.Is("::::+"):
					lists, sure = append(lists, nil), false
				default:
					lists[len(lists)-1] = append(lists[len(lists)-1], more)
				}
			}
			break
		}
	}
	e := c.by(Wrapper, "parallel", k.at)
	if g.has("S", "sshlogin", "sshloginfile") {
		e = e.by(Remote, "parallel -S", k.at)
		e.st = newRemoteState()
	}
	e.in = input{kind: piped}
	for _, arg := range w.parallelArgs(c, k, g, lists, sure) {
		w.parallelJob(e, k, template, arg)
	}
}

// parallelArgs returns the words that parallel inserts into its template one after the other: the words in its only
// list, the lines that it reads, or an unknown word.
func (w *walker) parallelArgs(c ctx, k call, g given, lists [][]Word, sure bool) (args []Word) {
	switch {
	case g.has("a", "arg-file", "pipe", "pipepart", "pipe-part"):
	case len(lists) == 1 && sure && len(lists[0]) <= maxRounds:
		args = lists[0]
	case lists == nil && c.in.kind == piped && c.in.text != "" && isKnown(c.in.text) &&
		!g.has("d", "delimiter", "C", "colsep", "N", "n", "max-args", "0", "null", "X", "m", "xargs"):
		for line := range strings.Lines(c.in.text) {
			if len(args) < maxRounds+1 {
				args = append(args, literalWord(strings.TrimSuffix(line, "\n"), w.place(k.at)))
			}
		}
	}
	if len(args) == 0 || len(args) > maxRounds || hasFunc(args, func(w Word) bool { return w.Kind != Literal }) {
		hidden := makeWord(unknown, false, true, "", w.place(k.at))
		if lists == nil {
			hidden.also = w.limitTexts(c.in.texts())
		}
		return []Word{hidden}
	}
	return args
}

// parallelJob walks the command line that parallel builds from its template for one argument: parallel 'gzip {}' :::
// a b. The shell parses the line again, so template words with special characters count as shell text.
func (w *walker) parallelJob(c ctx, k call, template []Word, arg Word) {
	if len(template) == 0 {
		if arg.Kind != Literal {
			w.opaque(c, k.at, k.index, OpaqueInput, "parallel runs the lines that it reads")
			return
		}
		w.shellText(c, k, "parallel", arg)
		return
	}
	replaced, plainWords := false, true
	words := make([]Word, 0, len(template)+1)
	for _, t := range template {
		raw := t.raw
		for {
			open := strings.IndexByte(raw, '{')
			shut := strings.IndexByte(raw[max(open, 0):], '}')
			if open < 0 || shut < 0 {
				break
			}
			replaced = true
			value := unknown
			if shut == 1 || raw[open:open+shut+1] == "{1}" {
				value = arg.loose()
			}
			if strings.ContainsRune(value, '{') {
				value = unknown
			}
			raw = raw[:open] + value + raw[open+shut+1:]
		}
		many := t.Many || t.Is("{}") && arg.Many
		words = append(words, makeWord(raw, t.Kind == Pattern, many, t.Source, t.Pos))
		plainWords = plainWords && strings.IndexFunc(t.Text, func(r rune) bool { return !isAlnum(r) && !strings.ContainsRune("_./:+,@%^={}-", r) }) < 0
	}
	if !replaced {
		words = append(words, arg)
	}
	hidden := arg.Kind != Literal
	w.run(c, call{words: words, at: words[0].Pos.Offset, outside: true, hidden: hidden})
	if !plainWords {
		text := makeWord(joinWords(words), false, false, "", words[0].Pos)
		if strings.Contains(text.raw, unknown) {
			// Parallel quotes the unknown part, so it stays one word and the words after it are certain.
			e := c.by(Shell, "parallel", k.at)
			e.st = c.st.child()
			w.text(e, text.raw, text.Pos.Offset)
			return
		}
		w.shellText(c, k, "parallel", text)
	}
}
