package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// Requests need a token whose role allows them.
func Example() {
	store := memory.New()
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store})
	if err != nil {
		panic(err)
	}
	handler := api.Handler(c, api.Options{Token: "secret"})
	for _, token := range []string{"secret", "guessed"} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost/runs", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(token, w.Code)
	}
	// Output:
	// secret 200
	// guessed 401
}
