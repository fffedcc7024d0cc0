// Command hello is a small agent with one hook: a model that may send mail, and a guard that denies mail to addresses
// that are not in the address book.
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
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

type Mail struct {
	To   string `json:"to" jsonschema:"a mail address"`
	Text string `json:"text"`
}

// sendMail is the tool of the agent. It only says what it would send.
var sendMail = toolexec.Func("send_mail", "Sends a mail.", func(_ context.Context, in Mail) (string, error) {
	return "sent to " + in.To, nil
})

var addressBook = []string{"ann@example.com", "carl@example.com"}

// onlyKnown is the hook. The agent asks it before each call of send_mail, and the tool runs only if it allows the call.
var onlyKnown = hooks.OnCall("only-known", "send_mail", func(_ context.Context, c hooks.ToolContext, in Mail) hooks.Result {
	if !slices.Contains(addressBook, in.To) {
		return c.Deny(in.To + " is not in the address book")
	}
	return c.Allow()
})

func main() {
	flag.Parse()
	if err := sayHello(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func sayHello(ctx context.Context, out io.Writer) error {
	driver, err := newDriver(out)
	if err != nil {
		return err
	}
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(sendMail), capability.UseHooks(onlyKnown)).Build().Get()
	if err != nil {
		return err
	}
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("Say hello to ann@example.com and to bob@example.org.")).Get()
	if err != nil {
		return err
	}
	fmt.Fprint(out, agenttest.Transcript(final))
	return nil
}
