package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// MostInput is the maximum size of standard input for a prompt.
const MostInput = 10 << 20

// PromptOf returns the prompt: the arguments, joined with spaces. Standard input replaces a final "-", and is the
// prompt if there are no arguments and the input is piped. The prompt is empty if there is no text.
func PromptOf(args []string, in *os.File) (string, error) {
	words := args
	fromStdin := len(args) == 0 && !term.IsTerminal(int(in.Fd()))
	if len(args) > 0 && args[len(args)-1] == "-" {
		words, fromStdin = args[:len(args)-1], true
	}
	prompt := strings.Join(words, " ")
	if fromStdin {
		text, err := io.ReadAll(io.LimitReader(in, MostInput+1))
		switch {
		case err != nil:
			return "", fmt.Errorf("reading the prompt from standard input: %w", err)
		case len(text) > MostInput:
			return "", errors.New("reading the prompt from standard input: it is longer than 10 MiB")
		}
		prompt = strings.TrimSpace(prompt + "\n\n" + strings.TrimRight(string(text), "\n"))
	}
	if !utf8.ValidString(prompt) {
		return "", errors.New("the prompt is not UTF-8 text")
	}
	return prompt, nil
}
