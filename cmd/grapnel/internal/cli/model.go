package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/registry"
)

// modelVariable names the model that is asked where neither flag nor file does.
const modelVariable = "GRAPNEL_MODEL"

// vendors are the model services by the keys that one looks for, in the order in
// which one is chosen by default; model is then the one that is asked.
var vendors = []struct {
	provider, model string
	keys            []string
	url             string // the variable that names another place for the service
}{
	{"openai", "gpt-6-luna", []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL"},
	{"openai-responses", "gpt-6-luna", []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL"},
	{"anthropic", "claude-haiku-5-5", []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_BASE_URL"},
	{"gemini", "gemini-3.8-flash", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GOOGLE_GEMINI_BASE_URL"},
}

// errNoKey is that no model was asked for and none can be.
var errNoKey = errors.New("no model was named and no key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)")

// choose returns the model to ask. Explicit says that it was named; where none was
// it is that of the first service for which there is a key, or errNoKey.
func choose(d registry.Definition) (m agentfile.Model, explicit bool, err error) {
	if d.Model != "" {
		err := m.Set(d.Model)
		return m, true, err
	}
	if text := os.Getenv(modelVariable); text != "" {
		if err := m.Set(text); err != nil {
			return m, true, &usageError{fmt.Errorf("%s=%q: %w", modelVariable, text, err)}
		}
		return m, true, nil
	}
	if d.BaseURL != "" || d.APIKeyEnv != "" || d.Price != nil {
		return m, true, &usageError{errors.New("it is said where a model is, or what it costs, but not which: " +
			"name it with --model, such as --model openai/llama3")}
	}
	for _, v := range vendors {
		if anySet(v.keys) {
			return agentfile.Model{Provider: v.provider, Name: v.model}, false, nil
		}
	}
	return m, false, errNoKey
}

func anySet(variables []string) bool {
	return slices.ContainsFunc(variables, func(name string) bool { return strings.TrimSpace(os.Getenv(name)) != "" })
}

// needsKey says which key is missing for a service that is not asked without one.
func needsKey(m agentfile.Model, d registry.Definition) error {
	for _, v := range vendors {
		if v.provider == m.Provider && d.BaseURL == "" && d.APIKeyEnv == "" && !anySet(append(v.keys, v.url)) {
			return fmt.Errorf("asking %s needs a key: set %s in the environment", &m, strings.Join(v.keys, " or "))
		}
	}
	return nil
}

// newDriver returns the driver that asks a model.
func newDriver(m agentfile.Model, d registry.Definition) (agent.Driver, error) {
	if err := needsKey(m, d); err != nil {
		return nil, err
	}
	key, err := variable("api_key_env", d.APIKeyEnv)
	if err != nil {
		return nil, err
	}
	prices := mo.None[drivers.Prices]()
	if p := d.Price; p != nil {
		prices = mo.Some(drivers.NewPrices("", map[string]drivers.Price{m.Name: {Input: p.Input, Output: p.Output}}))
	}
	url := string(d.BaseURL)
	switch m.Provider {
	case "azure", "azure-responses":
		return azureDriver(cloudModel{Model: m, BaseURL: url, Key: key, Prices: prices})
	case "vertex":
		return vertexDriver(cloudModel{Model: m, BaseURL: url, Key: key, Prices: prices})
	case "openai":
		return driverOf(openai.New(openai.Config{Model: m.Name, APIKey: key, BaseURL: url, Prices: prices}))
	case "openai-responses":
		return driverOf(openai.NewResponses(openai.Config{Model: m.Name, APIKey: key, BaseURL: url, Prices: prices}))
	case "anthropic":
		return driverOf(anthropic.New(anthropic.Config{Model: m.Name, APIKey: key, BaseURL: url, Prices: prices}))
	case "gemini":
		return driverOf(gemini.New(gemini.Config{Model: m.Name, APIKey: key, BaseURL: url, Prices: prices}))
	}
	return nil, fmt.Errorf("there is no driver for %q", m.Provider)
}

// driverOf keeps a nil pointer from becoming a driver.
func driverOf[D agent.Driver](d D, err error) (agent.Driver, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// firstCall is a driver whose very first call tells apart, with an *offlineError,
// that there is no way to the service at all. It is for a model that was not asked
// for: there is something else to show then.
type firstCall struct{ agent.Driver }

var (
	_ agent.Streamer  = firstCall{}
	_ agent.Describer = firstCall{}
)

// Next asks the driver.
func (d firstCall) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return reportStep(s, d.Driver.Next(ctx, s))
}

// Stream asks the driver.
func (d firstCall) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return reportStep(s, agent.Stream(ctx, d.Driver, s, emit))
}

// Features returns what the driver says of itself.
func (d firstCall) Features() agent.Features { return agent.FeaturesOf(d.Driver).OrEmpty() }

func reportStep(s agent.State, result mo.Result[agent.Step]) mo.Result[agent.Step] {
	if _, err := result.Get(); err != nil && s.StepCount() == 0 && unreachable(err) {
		return mo.Err[agent.Step](&offlineError{err})
	}
	return result
}

// offlineError is that there is no way to the service. It is not worth a retry.
type offlineError struct{ err error }

func (e *offlineError) Error() string   { return e.err.Error() }
func (e *offlineError) Unwrap() error   { return e.err }
func (e *offlineError) Retryable() bool { return false }

// unreachable reports whether a call never got to the service: its name is not
// known, or no server takes the connection.
func unreachable(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	for _, errno := range []error{syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// agentName returns what the agent is called where the file does not say.
func agentName(d registry.Definition) string { return cmp.Or(d.Name, "agent") }
