// Command hello is a small agent with one hook: a model that may send mail, and a guard that denies mail to addresses
// outside the address book. The agent is in hello.go. This file chooses its model.
//
//	go run ./examples/hello
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

var modelName = flag.String("model", "gpt-6.1-terra", "a model of OpenAI, or of the server that OPENAI_BASE_URL names")

func main() {
	flag.Parse()
	if err := printRun(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func printRun(ctx context.Context, out io.Writer) error {
	driver, err := newDriver(out)
	if err != nil {
		return err
	}
	final, err := sayHello(ctx, driver)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, agenttest.Transcript(final))
	return err
}

// newDriver returns the driver for the model that the environment names. When it names none, newDriver returns a
// script, so that the program runs anywhere.
func newDriver(out io.Writer) (agent.Driver, error) {
	if os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != "" {
		return openai.New(openai.Config{Model: *modelName})
	}
	fmt.Fprintln(out, "OPENAI_API_KEY and OPENAI_BASE_URL are not set: a script plays the model.")
	return agenttest.Script(
		agenttest.Call("send_mail", `{"to":"ann@example.com","text":"Hello!"}`).Call("send_mail", `{"to":"bob@example.org","text":"Hello!"}`),
		agenttest.Say("Ann has her mail. I may not write to Bob."),
	), nil
}
