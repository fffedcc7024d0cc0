package bash

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/jail"
)

func TestMain(m *testing.M) { jail.Main(m) }

// listed returns a line's commands in order, with joined words.
func listed(a Analysis) []string {
	var lines []string
	for _, c := range a.Commands {
		words := make([]string, len(c.Words))
		for i, w := range c.Words {
			words[i] = w.String()
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

func TestLine(t *testing.T) {
	a := Analyse(`cd /srv && sudo sh -c 'rm -rf "$1"' _ build`, Options{})
	assert.Equal(t, []string{"cd /srv", `sudo sh -c rm -rf "$1" _ build`, `sh -c rm -rf "$1" _ build`, "rm -rf build"}, listed(a))
	assert.True(t, a.Clear())
	assert.Equal(t, []File{{
		Path: "/srv/build", Known: true, Access: Deletes, Command: 3,
		Word: a.Files[0].Word, Pos: a.Files[0].Pos,
	}}, a.Files)
}
