package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

var modelName = flag.String("model", "gpt-6.1-terra", "a model of OpenAI, or of the server that OPENAI_BASE_URL names")

// newDriver returns the driver of the model that the environment names. When it names none, it returns a script, so that the program
// runs anywhere.
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
