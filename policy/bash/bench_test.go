package bash

import (
	"testing"
)

func BenchmarkAnalyse(b *testing.B) {
	for _, line := range []struct{ name, text string }{
		{"ordinary", "git status && ls -la src | grep foo"},
		{"one command", "go test ./..."},
		{"wrapped", `sudo env A=b timeout 5 sh -c 'cd /srv && rm -rf "$1"' _ build`},
		{"script", "for f in a b c; do\n  if [ -f \"$f\" ]; then\n    sed -i 's/x/y/g' \"$f\"\n  fi\ndone\nfind . -name '*.o' -exec rm {} +\n"},
	} {
		b.Run(line.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Analyse(line.text, Options{})
			}
		})
	}
}
