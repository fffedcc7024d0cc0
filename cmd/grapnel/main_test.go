package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"grapnel": main})
}

// The scripts run the program as a user does: what it writes where, and with which
// code it exits.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"PATH", "HOME"} {
				if e.Getenv(name) == "" {
					e.Setenv(name, os.Getenv(name))
				}
			}
			if cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output(); err == nil {
				e.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // a script's agent runs go test
			}
			examples, err := filepath.Abs("../../examples")
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"model":   model,
			"asked":   asked,
			"address": address,
			"answers": answers,
			"card":    card,
		},
	})
}

// exits runs grapnel and compares its exit code: exits 3 run --steps 1 hello.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: exits CODE ARGS…")
	}
	got := 0
	if err := ts.Exec("grapnel", args[1:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("grapnel %s exits with %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

// model starts a model service that plays the turns in a file, and tells grapnel of
// it: model turns.jsonl.
func model(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model FILE")
	}
	log := filepath.Join(ts.Getenv("WORK"), "asked.jsonl")
	_ = os.Remove(log) // of the model before
	service, err := newService(ts.ReadFile(args[0]), log)
	ts.Check(err)
	ts.Defer(service.Close)
	ts.Setenv("OPENAI_BASE_URL", service.URL+"/v1")
	ts.Setenv("OPENAI_API_KEY", "sk-test-1234")
	ts.Setenv("GRAPNEL_MODEL", "openai/test-model")
	ts.Setenv("ASKED", log)
}

// address chooses an address for a coordinator, and sets ADDRESS to it and SERVER to its URL.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: address")
	}
	at := freeAddress()
	ts.Setenv("ADDRESS", at)
	ts.Setenv("SERVER", "http://"+at)
}

// freeAddress returns an address on which nothing listens. Its port is below those of outgoing connections, so that it stays free.
func freeAddress() string {
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))) //nolint:noctx // it is closed at once
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
}

// answers waits until the coordinator answers.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: answers")
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(ts.Getenv("SERVER") + "/healthz") //nolint:noctx // it takes no time
		if err == nil {
			ts.Check(response.Body.Close())
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("the coordinator does not answer: %v", err)
		}
	}
}

// card sets CARD to the short ID of what a run asks about a call: card CALL [FLAGS…].
func card(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: card CALL [FLAGS…]")
	}
	ts.Check(ts.Exec("grapnel", append([]string{"approvals", "list", "--json"}, args[1:]...)...))
	var all []struct{ Call, Wait string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	for _, w := range all {
		if w.Call == args[0] || args[0] == "gate" {
			ts.Setenv("CARD", w.Wait[:12])
			return
		}
	}
	ts.Fatalf("nothing is asked about %s: %v", args[0], all)
}

// asked checks that what the model was asked matches, as grep does in a file.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	text, err := os.ReadFile(ts.Getenv("ASKED"))
	ts.Check(err)
	if strings.Contains(string(text), strings.Join(args, " ")) == neg {
		ts.Fatalf("asked %v %q, in:\n%s", !neg, args, text)
	}
}
