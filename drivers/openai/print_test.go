package openai_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// TestConfigIsPrintedWithoutSecrets: a Config that ends up in a log takes no key there.
func TestConfigIsPrintedWithoutSecrets(t *testing.T) {
	c := openai.Config{
		Model: "m", APIKey: modeltest.Key, BaseURL: "http://user:" + modeltest.Key + "@host/x",
		Header: http.Header{"Authorization": {"Bearer " + modeltest.Key}},
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.Equal(t, `openai.Config{"m" at http://host/x}`, fmt.Sprintf(verb, c), verb)
		assert.NotContains(t, fmt.Sprintf(verb, &c)+fmt.Sprintf(verb, []any{c}), modeltest.Key, verb)
	}
}
