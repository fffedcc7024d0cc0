package bash

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPythonThatComputes(t *testing.T) {
	for code, reads := range map[string][]string{
		"print(1+1)": nil,
		"import json,sys; print(json.load(sys.stdin)['a']['b'])":                                     nil,
		"import json; d=json.load(open('a.json')); print(len(d['items']))":                           {"a.json"},
		"from collections import Counter\nprint(Counter(open(\"x\").read().split()).most_common(3))": {"x"},
		"import sys\nfor l in sys.stdin:\n  a, b = l.split()\n  print(f'{int(a)*2:>5} {b}')":         nil,
		"print('\\n'.join(str(i) for i in range(3)))":                                                nil,
		"def f(n): return n if n < 2 else f(n-1)+f(n-2)\nprint(f(9))":                                nil,
		"import datetime as d; print(d.datetime.now().isoformat())  # now":                           nil,
		"with open('a', encoding='utf-8') as f: print(sum(len(l) for l in f))":                       {"a"},
		"import re; print(re.findall(r'\\d+', open('a', 'rb').read().decode()))":                     {"a"},
	} {
		p := pythonReader{text: code}
		assert.True(t, p.computes(), code)
		assert.Equal(t, reads, p.reads, code)
	}
	for _, code := range []string{
		"import os; os.remove('a')", "exec('x')", "e=exec; e('x')", "list(map(exec, ['x']))", "open('a','w')", "open(x)", "open('a', mode='w')", "__import__('os')",
		"().__class__.__base__", "import json; json.decoder.sys", "from sys import modules", "from os import system", "from json import *", "import os.path", "x()",
		"print('{0.modules[os].environ}'.format(sys))", "print(f'{exec(1)}')", "@exec\ndef f(): pass", "class A: pass", "import subprocess", "a = 'x", "`ls`", "import shutil as json",
		"getattr(x, 'y')", "import json, os", "import sys; sys.modules['os'].system('x')", "import re; re.sys", "f = open; f('a')", "print(open)", "def open(x): pass",
		"from json import loads as f; f('x')", "lambda: eval", "import pathlib; pathlib.Path('a').unlink()", "import sys; sys.setprofile(print)", "import json; json.dump({}, open('a', 'w'))",
	} {
		p := pythonReader{text: code}
		assert.False(t, p.computes(), code)
	}
}
