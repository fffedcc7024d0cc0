package bash

import (
	"strings"

	"github.com/samber/lo"
	"mvdan.cc/sh/v3/syntax"
)

// stmts walks statements in order.
func (w *walker) stmts(c ctx, list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(c, s)
	}
}

// stmt walks one statement. Afterwards, c holds the state that the statement leaves.
func (w *walker) stmt(c ctx, s *syntax.Stmt) {
	if !w.spend(4+c.st.size()) || w.tooDeep(c, s) {
		return
	}
	c.depth++
	c.st.cdOK, c.st.cdFail = nil, nil
	if s.Background || s.Coprocess {
		c = c.by(Background, "", c.src.offset(s.Pos()))
		c.st = c.st.fork()
		c.out.lose()
		if c.in.kind == inherited {
			c.in = input{kind: piped} // /dev/null, without job control
		}
	}
	if x, ok := s.Cmd.(*syntax.CallExpr); ok {
		w.callExpr(c, x, s)
		return
	}
	redirs := w.redirects(&c, s.Redirs, -1)
	for _, r := range redirs {
		if writesOut(r) {
			c.out.lose()
			c.out = nil
		}
	}
	before := len(w.out.Commands)
	switch x := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if x.Op == syntax.Pipe || x.Op == syntax.PipeAll {
			w.pipeline(c, x)
		} else {
			w.andOr(c, x)
		}
	case *syntax.DeclClause:
		w.declClause(c, x, redirs)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			w.stmt(c.by(Wrapper, "time", c.src.offset(x.Pos())), x.Stmt)
		}
	case *syntax.CoprocClause:
		w.coproc(c, x)
	case *syntax.FuncDecl:
		w.funcDecl(c, x)
	case *syntax.Subshell:
		c = c.by(Subshell, "", c.src.offset(x.Pos()))
		c.st = c.st.fork()
		w.stmts(c, x.Stmts)
	case *syntax.Block:
		w.stmts(c.by(Group, "", c.src.offset(x.Pos())), x.Stmts)
	case *syntax.IfClause:
		w.branches(c, func() { w.ifClause(c.by(If, "", c.src.offset(x.Pos())), x) })
	case *syntax.CaseClause:
		w.branches(c, func() { w.caseClause(c.by(Case, "", c.src.offset(x.Pos())), x) })
	case *syntax.WhileClause:
		w.branches(c, func() { w.whileClause(c.by(Loop, "", c.src.offset(x.Pos())), x) })
	case *syntax.ForClause:
		w.branches(c, func() { w.forClause(c.by(Loop, "", c.src.offset(x.Pos())), x) })
	case *syntax.ArithmCmd:
		if c.st.posix {
			w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueSyntax, "((…)) is a subshell in some shells")
		}
		w.arithm(c, x.X)
	case *syntax.LetClause:
		for _, e := range x.Exprs {
			w.arithm(c, e)
		}
	case *syntax.TestClause:
		w.test(c, x.X)
	case nil:
	default:
		w.opaque(c, c.src.offset(s.Pos()), -1, OpaqueSyntax, "a construct of another shell")
	}
	w.emptiesAfter(c, before, redirs, -1)
	if _, binary := s.Cmd.(*syntax.BinaryCmd); !binary {
		c.st.cdOK, c.st.cdFail = nil, nil
	}
}

// tooDeep reports whether a statement is nested too deeply, and records it as opaque.
func (w *walker) tooDeep(c ctx, s *syntax.Stmt) bool {
	if c.depth < maxDepth {
		return false
	}
	w.opaque(c, c.src.offset(s.Pos()), -1, OpaqueLimit, "nested too deeply")
	return true
}

// branches walks code that may only partly run, so its output is unknown.
func (w *walker) branches(c ctx, walk func()) {
	if c.out == nil {
		walk()
		return
	}
	before := c.out.text
	walk()
	if c.out.text != before {
		c.out.text = before
		c.out.lose()
	}
}

// flattenChain returns the statements in a && b || c or a | b | c, and the operators between them.
func flattenChain(x *syntax.BinaryCmd, pipes bool) ([]*syntax.Stmt, []*syntax.BinaryCmd) {
	var stmts []*syntax.Stmt
	var ops []*syntax.BinaryCmd
	for {
		stmts, ops = append(stmts, x.Y), append(ops, x)
		left, ok := x.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(x.X.Redirs) > 0 || x.X.Background || x.X.Coprocess || pipes != (left.Op == syntax.Pipe || left.Op == syntax.PipeAll) {
			break
		}
		x = left
	}
	stmts = append(stmts, x.X)
	for i, j := 0, len(stmts)-1; i < j; i, j = i+1, j-1 {
		stmts[i], stmts[j] = stmts[j], stmts[i]
	}
	for i, j := 0, len(ops)-1; i < j; i, j = i+1, j-1 {
		ops[i], ops[j] = ops[j], ops[i]
	}
	return stmts, ops
}

// pipeline walks a | b | c. Each command runs in a copy of the shell and reads the previous command's output: echo
// 'rm x' | sh reaches rm. With lastpipe, the last command may run in the shell itself.
func (w *walker) pipeline(c ctx, x *syntax.BinaryCmd) {
	stmts, ops := flattenChain(x, true)
	in := c.in
	for i, s := range stmts {
		e := c
		e.in = in
		if i > 0 {
			e = e.by(Pipe, "", c.src.offset(ops[i-1].OpPos))
			e.in = in
		}
		last := i == len(stmts)-1
		e.st = c.st.fork()
		e.st.own()
		if !last {
			e.out = &output{}
		}
		w.stmt(e, s)
		if last && c.st.lastPipe {
			c.st.join(e.st)
		}
		if !last {
			if ops[i].Op == syntax.PipeAll {
				e.out.lose()
			}
			in = input{kind: piped, text: e.out.text, also: e.out.also, names: e.out.onlyNames()}
		}
	}
}

// andOr walks a && b || c. Invariant: after each operator, the state joins the state of the branch that ran and the
// state without it. Only the directory is followed more precisely, by whether cd succeeded: in cd x && rm y, rm runs
// in x.
func (w *walker) andOr(c ctx, x *syntax.BinaryCmd) {
	stmts, ops := flattenChain(x, false)
	w.stmt(c, stmts[0])
	for i, op := range ops {
		next := c.by(And, "", c.src.offset(op.OpPos))
		if op.Op == syntax.OrStmt {
			next = c.by(Or, "", c.src.offset(op.OpPos))
		}
		// The directory after cd depends on whether cd succeeded.
		skipped, ok, fail := c.st.fork(), c.st.cdOK, c.st.cdFail
		if ok != nil && !stmts[i].Negated {
			here, there := ok, fail
			if op.Op == syntax.OrStmt {
				here, there = fail, ok
			}
			c.st.dirs, skipped.dirs = orUnknown(here), orUnknown(there)
			c.st.cdOK, c.st.cdFail = nil, nil
		}
		w.branches(c, func() { w.stmt(next, stmts[i+1]) })
		onlyOK := c.st.cdOK
		onlyFail := c.st.cdFail
		switch {
		case alwaysLeaves(stmts[i+1]):
			*c.st = *skipped
			c.st.shared = true
		case op.Op == syntax.AndStmt && onlyOK != nil:
			// In a && cd b && c, c runs only in b.
			c.st.join(skipped)
			c.st.cdOK, c.st.cdFail = onlyOK, orEmpty(joinDirs(orUnknown(onlyFail), skipped.dirs))
		case op.Op == syntax.AndStmt && i+1 < len(ops) && ops[i+1].Op == syntax.AndStmt:
			// The command after && runs only if this one succeeded.
			dirs := c.st.dirs
			c.st.join(skipped)
			c.st.cdOK, c.st.cdFail = orEmpty(dirs), orEmpty(c.st.dirs)
		default:
			c.st.join(skipped)
		}
	}
}

// orUnknown returns nil, which means unknown, for an empty list.
func orUnknown(dirs []string) []string {
	if len(dirs) == 0 {
		return nil
	}
	return dirs
}

// alwaysLeaves reports whether the statement always exits, so that nothing after it runs.
func alwaysLeaves(s *syntax.Stmt) bool {
	x, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || len(x.Args) == 0 {
		return false
	}
	name := x.Args[0].Lit()
	return (name == "exit" || name == "return" || name == "break" || name == "continue") && len(s.Redirs) == 0
}

// ifClause walks the condition and both branches, and joins their states.
func (w *walker) ifClause(c ctx, x *syntax.IfClause) {
	w.stmts(c, x.Cond)
	if x.Else == nil && x.ThenPos.IsValid() {
		skipped := c.st.fork()
		w.stmts(c, x.Then)
		c.st.join(skipped)
		return
	}
	other := c
	other.st = c.st.fork()
	w.stmts(c, x.Then)
	if x.Else != nil && w.spend(1) {
		other.depth++
		if other.depth < maxDepth*4 {
			w.ifClause(other, x.Else)
		} else {
			w.opaque(c, c.src.offset(x.Else.Pos()), -1, OpaqueLimit, "too many elif")
		}
		c.st.join(other.st)
	}
}

// caseClause walks all branches, because it does not match patterns, and joins their states.
func (w *walker) caseClause(c ctx, x *syntax.CaseClause) {
	w.value(c, x.Word, false)
	for _, item := range x.Items {
		for _, p := range item.Patterns {
			w.value(c, p, false)
		}
		// Any branch may run, and after ;& and ;;& also the next one.
		branch := c
		branch.st = c.st.fork()
		w.stmts(branch, item.Stmts)
		c.st.join(branch.st)
	}
}

// whileClause walks the body once, in a state that is valid for every iteration.
func (w *walker) whileClause(c ctx, x *syntax.WhileClause) {
	w.blurLoop(c, x.Cond, x.Do)
	w.stmts(c, x.Cond)
	skipped := c.st.fork()
	w.stmts(c, x.Do)
	c.st.join(skipped)
}

// maxRounds is the maximum number of items for which the body of a for loop is walked once each.
const maxRounds = 8

// forClause walks for x in …, for ((…)) and select.
func (w *walker) forClause(c ctx, x *syntax.ForClause) {
	switch loop := x.Loop.(type) {
	case *syntax.CStyleLoop:
		w.arithm(c, loop.Init)
		w.blurLoop(c, x.Do, nil)
		w.blurArithm(c, loop.Post)
		w.blurArithm(c, loop.Cond)
		w.arithm(c, loop.Cond)
		skipped := c.st.fork()
		w.stmts(c, x.Do)
		w.arithm(c, loop.Post)
		c.st.join(skipped)
	case *syntax.WordIter:
		var items []Word
		numbers := loop.InPos.IsValid() && !lo.SomeBy(loop.Items, func(word *syntax.Word) bool { return !listsNumbers(c.st, word) })
		switch {
		case loop.InPos.IsValid():
			items = w.words(c, loop.Items)
		case c.st.noParams:
			items = []Word{makeWord(unknown, false, true, "", w.place(c.src.offset(x.Pos())))}
		default:
			items = c.st.params
		}
		skipped := c.st.fork()
		w.rounds(c, x, loop.Name.Value, items, numbers)
		c.st.join(skipped)
	}
}

// rounds walks the body of a for loop. If there are few items and all are known, it walks the body once for each: for
// f in a b; do rm $f; done. Otherwise it walks the body once, with the items' common prefix.
func (w *walker) rounds(c ctx, x *syntax.ForClause, name string, items []Word, numbers bool) {
	count := func(kind WordKind) int { return lo.CountBy(items, func(item Word) bool { return item.Kind == kind }) }
	literals := count(Literal)
	apart := !x.Select && (len(items) <= maxRounds || w.small(c, x, len(items))) && c.depth < maxDepth/2 && literals+count(Pattern) == len(items)
	if !apart || literals < len(items) || w.jumps(c, x.Do...) {
		w.blurLoop(c, x.Do, nil) // there may be any number of iterations
	}
	at := c.src.offset(x.Pos())
	for _, item := range items {
		w.remember(name, item.also...)
		if item.Kind != Partial { // with a pattern, the files' names are unknown
			w.remember(name, item.Text)
		}
		w.environment(c, name, item.loose(), at, -1)
	}
	if !apart {
		w.setVariable(c, name, value{text: lo.Ternary(x.Select, unknown, commonPrefix(items)), number: numbers && !x.Select}, at)
		w.stmts(c, x.Do)
		return
	}
	c.times = max(c.times, 1) * len(items)
	for _, item := range items {
		before := c.st.fork()
		v := value{text: item.loose()}
		if item.Kind == Pattern {
			v.pattern, v.split = lo.Ternary(item.here, "./", "")+item.Text, item.Split
		}
		w.setVariable(c, name, v, at)
		w.stmts(c, x.Do)
		c.st.join(before)
	}
}

// maxWalks is the maximum number of commands in all iterations over a longer list.
const maxWalks = 400

// small reports whether a loop over a list of more than maxRounds items, such as {1..20}, can be walked once for
// each.
func (w *walker) small(c ctx, x *syntax.ForClause, items int) bool {
	nodes := 0
	for _, s := range x.Do {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.CallExpr, *syntax.DeclClause, *syntax.Assign, *syntax.ArithmExp:
				nodes++
			case *syntax.ForClause, *syntax.WhileClause, *syntax.FuncDecl:
				nodes += maxWalks
			}
			return w.spend(1)
		})
	}
	return max(c.times, 1)*items*max(nodes, 1) <= maxWalks
}

// commonPrefix returns the longest common prefix of the items.
func commonPrefix(items []Word) string {
	if len(items) == 0 {
		return unknown
	}
	prefix := items[0].prefix()
	for _, item := range items {
		for !strings.HasPrefix(item.prefix(), prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix + unknown
}

// coproc walks a coprocess, whose input and output are unknown.
func (w *walker) coproc(c ctx, x *syntax.CoprocClause) {
	name := "COPROC"
	if x.Name != nil {
		name = x.Name.Lit()
	}
	c.st.set(name, value{text: unknown})
	c = c.by(Coproc, "", c.src.offset(x.Pos()))
	c.st = c.st.fork()
	c.in = input{kind: piped, text: unknown}
	c.out = nil
	if x.Name != nil {
		w.value(c, x.Name, false)
	}
	w.stmt(c, x.Stmt)
}

// funcDecl records a function's body for its calls. If the function is never called, its body is walked at the end,
// in an unknown state.
func (w *walker) funcDecl(c ctx, x *syntax.FuncDecl) {
	if x.Name == nil || x.Body == nil {
		return
	}
	c.st.own()
	if c.st.funcs == nil {
		c.st.funcs = map[string]function{}
	}
	c.st.funcs[x.Name.Value] = function{bodies: []*syntax.FuncDecl{x}, from: []source{c.src}}
	later := c
	later.st = &state{home: c.st.home, noParams: true, posix: c.st.posix, noFields: c.st.noFields}
	later.in, later.out = input{kind: piped, text: unknown}, nil
	w.decls = append(w.decls, decl{x, later})
}

// walkDeclared walks the functions that were never called.
func (w *walker) walkDeclared() {
	for i := 0; i < len(w.decls); i++ { //nolint:intrange // a body may declare more
		d := w.decls[i]
		if w.called[d.body] {
			continue
		}
		w.markCalled(d.body)
		w.stmt(d.c.by(Declared, d.body.Name.Value, d.c.src.offset(d.body.Pos())), d.body.Body)
	}
}

// markCalled records that a function was called, so that its body is not walked again at the end.
func (w *walker) markCalled(f *syntax.FuncDecl) {
	if w.called == nil {
		w.called = map[*syntax.FuncDecl]bool{}
	}
	w.called[f] = true
}

// redirects walks redirections and records their files. It sets the standard input in c.
//
//nolint:gocognit // flat: one case for each operator
func (w *walker) redirects(c *ctx, list []*syntax.Redirect, command int) []Redirect {
	if len(list) == 0 {
		return nil
	}
	redirs := make([]Redirect, 0, len(list))
	for _, r := range list {
		if !w.spend(2) {
			break
		}
		out := Redirect{Op: r.Op.String(), Pos: w.place(c.src.offset(r.Pos()))}
		if r.N != nil {
			out.FD = r.N.Value
			if name, found := strings.CutPrefix(out.FD, "{"); found {
				name, index, indexed := strings.Cut(strings.TrimSuffix(name, "}"), "[")
				if indexed && !integer().MatchString(strings.TrimSuffix(index, "]")) {
					w.opaque(*c, c.src.offset(r.Pos()), command, OpaqueText, "the index of an array is expanded when a file is opened")
				}
				c.st.set(name, value{text: unknown, number: true})
			}
		}
		stdin := out.FD == "" || out.FD == "0"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			raw := ""
			if r.Hdoc != nil {
				raw = w.heredoc(*c, r)
			}
			out.Target = makeWord(raw, false, false, "", w.place(c.src.offset(r.Word.Pos())))
			if stdin {
				c.in = input{kind: piped, text: raw}
			}
		case syntax.WordHdoc:
			raw, also := w.possibleValue(*c, r.Word, false)
			out.Target = makeWord(raw, false, false, c.src.slice(r.Word.Pos(), r.Word.End()), w.place(c.src.offset(r.Word.Pos())))
			if stdin {
				c.in = input{kind: piped, text: raw + "\n", also: also}
			}
		default:
			out.Target = w.oneWord(*c, r.Word)
			if stdin && (r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut) {
				c.in = input{kind: fromFile, text: out.Target.raw}
				for _, p := range r.Word.Parts {
					if _, process := p.(*syntax.ProcSubst); process {
						c.in = input{kind: piped, text: unknown, also: w.processed, names: w.printed}
					}
				}
			}
			if stdin && r.Op == syntax.DplIn {
				c.in = input{kind: piped, text: unknown}
			}
		}
		redirs = append(redirs, out)
		w.redirectedFile(*c, out, command)
	}
	return redirs
}

// writesOut reports whether a redirection sends standard output away from the pipe: >x, 1>x, &>x.
func writesOut(r Redirect) bool {
	return strings.HasPrefix(r.Op, ">") && (r.FD == "" || r.FD == "1") || strings.HasPrefix(r.Op, "&>")
}

// heredoc returns a here-document's text, expanded if its delimiter is not quoted.
func (w *walker) heredoc(c ctx, r *syntax.Redirect) string {
	quoted := false
	for _, p := range r.Word.Parts {
		lit, ok := p.(*syntax.Lit)
		quoted = quoted || !ok || strings.ContainsRune(lit.Value, '\\')
	}
	var raw string
	if lit, ok := onlyLit(r.Hdoc); quoted && ok {
		raw = lit
	} else {
		raw = w.value(c, r.Hdoc, true)
	}
	if r.Op == syntax.DashHdoc {
		lines := strings.Split(raw, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimLeft(l, "\t")
		}
		raw = strings.Join(lines, "\n")
	}
	return raw
}

// onlyLit returns a word's text, and false if it has quotes or expansions.
func onlyLit(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range word.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// test walks [[ … ]]. Its words are not split; -v takes a name whose index bash evaluates, and -eq evaluates both
// sides.
func (w *walker) test(c ctx, x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		if c.st.posix {
			switch x.Op {
			case syntax.AndTest, syntax.OrTest, syntax.TsBefore, syntax.TsAfter:
				w.opaque(c, c.src.offset(x.OpPos), -1, OpaqueSyntax, "[[ … ]] is not a test in some shells")
			}
		}
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.walkTestWord(c, x.X)
			w.walkTestWord(c, x.Y)
		default:
			w.test(c, x.X)
			w.test(c, x.Y)
		}
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w.walkTestWord(c, x.X)
			return
		}
		w.test(c, x.X)
	case *syntax.ParenTest:
		if c.st.posix {
			w.opaque(c, c.src.offset(x.Lparen), -1, OpaqueSyntax, "[[ … ]] is not a test in some shells")
		}
		w.test(c, x.X)
	case *syntax.Word:
		w.value(c, x, false)
	}
}

// walkTestWord handles a test's word that bash evaluates, including an array index in it.
func (w *walker) walkTestWord(c ctx, x syntax.TestExpr) {
	if word, ok := x.(*syntax.Word); ok {
		number := makesNumber(c.st, word)
		if text := w.value(c, word, false); !number {
			w.walkArithmetic(c, text, c.src.offset(word.Pos()))
		}
		return
	}
	w.test(c, x)
}

// arithm walks an expression in (( … )): its substitutions, indexes and assignments.
func (w *walker) arithm(c ctx, x syntax.ArithmExpr) {
	if x == nil || !w.spend(1) {
		return
	}
	if c.depth++; c.depth > maxDepth*2 {
		w.opaque(c, c.src.offset(x.Pos()), -1, OpaqueLimit, "nested too deeply")
		return
	}
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		w.arithm(c, x.X)
		w.arithm(c, x.Y)
		if isAssignment(x.Op) {
			w.blurArithm(c, x)
		}
	case *syntax.UnaryArithm:
		w.arithm(c, x.X)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.blurArithm(c, x)
		}
	case *syntax.ParenArithm:
		w.arithm(c, x.X)
	case *syntax.Word:
		number := makesNumber(c.st, x)
		if text := w.value(c, x, true); !number {
			w.walkArithmetic(c, text, c.src.offset(x.Pos()))
		}
	}
}

// isAssignment reports whether an arithmetic operator assigns: =, +=, <<=.
func isAssignment(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn,
		syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}
