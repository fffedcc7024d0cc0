package agents

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
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/registry"
)

// modelVariable names the default model, if neither a flag nor the agent file sets one.
const modelVariable = "GRAPNEL_MODEL"

// vendors are the model services with their key variables, in the order in which the default is chosen; model
// is the default model of the service.
var vendors = []struct {
	provider, model string
	keys            []string
	url             string // the variable for another URL of the service
}{
	{"openai", "gpt-6-luna", []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL"},
	{"openai-responses", "gpt-6-luna", []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL"},
	{"anthropic", "claude-haiku-5-5", []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_BASE_URL"},
	{"gemini", "gemini-3.8-flash", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GOOGLE_GEMINI_BASE_URL"},
}

// ErrNoKey is returned when no model was named and no key is set.
var ErrNoKey = &drivers.ConfigError{Err: errors.New("no model was named and no key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)")}

// Choose returns the model. Explicit reports whether the user named it. Otherwise choose returns the default model of
// the first service that has a key, or errNoKey.
func Choose(d registry.Definition) (m agentfile.Model, explicit bool, err error) {
	if d.Model != "" {
		err := m.Set(d.Model)
		return m, true, err
	}
	if text := os.Getenv(modelVariable); text != "" {
		if err := m.Set(text); err != nil {
			return m, true, console.Usagef("%s=%q: %w", modelVariable, text, err)
		}
		return m, true, nil
	}
	if d.BaseURL != "" || d.APIKeyEnv != "" || d.Price != nil {
		return m, true, console.Usagef("a model's address or price is set, but not its name: set it with --model, such as --model openai/llama3")
	}
	for _, v := range vendors {
		if anySet(v.keys) {
			return agentfile.Model{Provider: v.provider, Name: v.model}, false, nil
		}
	}
	return m, false, ErrNoKey
}

func anySet(variables []string) bool {
	return slices.ContainsFunc(variables, func(name string) bool { return strings.TrimSpace(os.Getenv(name)) != "" })
}

// needsKey returns an error for a missing key of a service that requires one.
func needsKey(m agentfile.Model, d registry.Definition) error {
	for _, v := range vendors {
		if v.provider == m.Provider && d.BaseURL == "" && d.APIKeyEnv == "" && !anySet(append(v.keys, v.url)) {
			return fmt.Errorf("asking %s needs a key: set %s in the environment", &m, strings.Join(v.keys, " or "))
		}
	}
	return nil
}

// newDriver returns the driver for a model, or a *drivers.ConfigError.
func newDriver(m agentfile.Model, d registry.Definition) (agent.Driver, error) {
	driver, err := configuredDriver(m, d)
	if err != nil {
		return nil, &drivers.ConfigError{Err: err}
	}
	return driver, nil
}

func configuredDriver(m agentfile.Model, d registry.Definition) (agent.Driver, error) {
	if err := needsKey(m, d); err != nil {
		return nil, err
	}
	key, err := variable("api_key_env", d.APIKeyEnv)
	if err != nil {
		return nil, err
	}
	var prices *drivers.Prices
	if p := d.Price; p != nil {
		prices = new(drivers.NewPrices("", map[string]drivers.Price{m.Name: {Input: p.Input, Output: p.Output}}))
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
	return nil, fmt.Errorf("no driver for %q", m.Provider)
}

// driverOf converts a nil pointer to a nil driver.
func driverOf[D agent.Driver](d D, err error) (agent.Driver, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// firstCall is a driver whose first call returns an *offlineError if the service cannot be reached. It is for
// a model that the user did not name: then grapnel plays the recording instead.
type firstCall struct{ agent.Driver }

var (
	_ agent.Streamer  = firstCall{}
	_ agent.Describer = firstCall{}
)

// Next calls the driver.
func (d firstCall) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return reportStep(s, d.Driver.Next(ctx, s))
}

// Stream calls the driver.
func (d firstCall) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return reportStep(s, agent.Stream(ctx, d.Driver, s, emit))
}

// Features returns the features of the driver.
func (d firstCall) Features() agent.Features { return agent.FeaturesOf(d.Driver) }

func reportStep(s agent.State, result mo.Result[agent.Step]) mo.Result[agent.Step] {
	if _, err := result.Get(); err != nil && s.StepCount() == 0 && unreachable(err) {
		return mo.Err[agent.Step](&OfflineError{err})
	}
	return result
}

// OfflineError is returned when the service cannot be reached. Such a call is not retried.
type OfflineError struct{ err error }

func (e *OfflineError) Error() string { return e.err.Error() }
func (e *OfflineError) Unwrap() error { return e.err }

// Retryable returns false: the person must act.
func (e *OfflineError) Retryable() bool { return false }

// unreachable reports whether a call never reached the service: its host name is unknown, or no server
// accepts the connection.
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

// AgentName returns the name of the agent, or the default name.
func AgentName(d registry.Definition) string { return cmp.Or(d.Name, "agent") }
