package approval_test

import (
	"context"
	"crypto/hmac"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// notice is what a notifier is told when a run parks.
var notice = durable.Notice{
	Run: agent.Run{ID: "run_1", Agent: "clerk"},
	Calls: []durable.WaitingCall{{
		Token: "xyz", // 32 random bytes, really
		Intervention: agent.Intervention{
			Call:      agent.ToolCall{ID: "c1", Name: "transfer", Arguments: `{"to":"Bob","amount":250}`},
			Questions: agent.Questions{{By: "guard", Reason: "250 is more than 100"}},
		},
	}},
}

func ExampleLog() {
	notifier := approval.Log(os.Stdout, "https://desk.example.com")
	fmt.Println(notifier.Notify(context.Background(), notice))
	// Output:
	// run run_1 of clerk waits for approval of transfer (250 is more than 100): https://desk.example.com/approvals/xyz
	// <nil>
}

// Who gets the message can see who sent it.
func ExampleWebhook() {
	key := []byte("known to both")
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		good := hmac.Equal([]byte(r.Header.Get(approval.SignatureHeader)), []byte(approval.Signature(key, body)))
		fmt.Println("signed:", good)
	}))
	defer chat.Close()

	notifier := approval.Webhook{URL: chat.URL, Links: "https://desk.example.com", Key: key}
	fmt.Println(notifier.Notify(context.Background(), notice))
	// Output:
	// signed: true
	// <nil>
}

// A server listens on the loopback address, unless it is told otherwise.
func ExampleServer_Listen() {
	_, err := approval.Server{Address: "0.0.0.0:8080"}.Listen(context.Background())
	fmt.Println(err)
	// Output:
	// listening for approvals on 0.0.0.0:8080: other machines can reach this address: listen on 127.0.0.1, or set Remote to allow them
}
