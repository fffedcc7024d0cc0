package tools_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// spec returns a tool with string arguments, given as "name" or "name: description".
func spec(name, description string, arguments ...string) agent.ToolSpec {
	var members []string
	for _, a := range arguments {
		name, text, _ := strings.Cut(a, ": ")
		members = append(members, fmt.Sprintf(`%q: {"type": "string", "description": %q}`, name, text))
	}
	return agent.ToolSpec{Name: name, Description: description, Parameters: `{"type": "object", "properties": {` + strings.Join(members, ", ") + `}}`}
}

// Effects and arguments' roles of tools in many styles.
func TestInference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		spec    agent.ToolSpec
		effects []tools.Effect
		roles   map[string]tools.Role
	}{
		{spec("createTransfer", "", "targetAccount", "value"), []tools.Effect{tools.Pays}, map[string]tools.Role{"targetAccount": tools.Payee, "value": tools.Amount}},
		{spec("payments.create", "", "beneficiary", "amount"), []tools.Effect{tools.Pays}, map[string]tools.Role{"beneficiary": tools.Payee}},
		{spec("remit-funds", "", "payee-iban", "sum"), []tools.Effect{tools.Pays}, map[string]tools.Role{"payee-iban": tools.Payee, "sum": tools.Amount}},
		{spec("op_17", "Transfers money to another account.", "a1: IBAN of the receiver", "a2: Amount of money"), []tools.Effect{tools.Pays}, map[string]tools.Role{"a1": tools.Payee, "a2": tools.Amount}},
		{spec("mcp__mail__dispatchLetter", "", "addressee", "text"), []tools.Effect{tools.Sends}, map[string]tools.Role{"addressee": tools.Recipient, "text": tools.Content}},
		{spec("x", "Delivers a message to a person.", "p: The user who receives it", "q: Text of the message"), []tools.Effect{tools.Sends}, map[string]tools.Role{"p": tools.Recipient, "q": tools.Content}},
		{spec("order_cancel", "", "orderId"), []tools.Effect{tools.Deletes}, map[string]tools.Role{"orderId": tools.Target}},
		{spec("expelMember", "", "username"), []tools.Effect{tools.Deletes}, map[string]tools.Role{"username": tools.Recipient}},
		{spec("rotate_secret", "", "newSecret"), []tools.Effect{tools.ChangesCredentials}, map[string]tools.Role{"newSecret": tools.Secret}},
		{spec("shareDocument", "", "documentId", "collaborator"), []tools.Effect{tools.Grants}, map[string]tools.Role{"documentId": tools.Target, "collaborator": tools.Recipient}},
		{spec("calendar.events.insert", "", "summary", "start", "attendees"), []tools.Effect{tools.Books}, map[string]tools.Role{"attendees": tools.Recipient, "start": tools.When}},
		{spec("get_or_create_user", "", "email"), []tools.Effect{tools.Grants}, map[string]tools.Role{"email": tools.Recipient}},
		{spec("transfer_call", "Transfers the caller to a human.", "summary"), []tools.Effect{tools.Writes}, map[string]tools.Role{"summary": tools.Content}},
		{spec("fetchUrl", "", "uri"), []tools.Effect{tools.Fetches}, map[string]tools.Role{"uri": tools.Address}},
		{spec("listInvoices", ""), []tools.Effect{tools.Reads}, nil},
		{spec("run_python", "", "source"), []tools.Effect{tools.Executes}, nil},
		{spec("zorble", "", "frob"), nil, map[string]tools.Role{"frob": tools.Unknown}},
	} {
		d := tools.Table{}.Describe(tc.spec)
		assert.Equal(t, tc.effects, d.Effects, tc.spec.Name)
		for argument, role := range tc.roles {
			assert.Equal(t, role, d.Role(argument), "%s %s", tc.spec.Name, argument)
		}
	}
}

// A person's description takes precedence over the tool's declaration, and the declaration over the inference.
func TestSourcesInOrder(t *testing.T) {
	t.Parallel()
	s := spec("list_things", "Lists things.", "x")
	s.Purpose = &agent.Purpose{Effects: []string{"deletes"}, Roles: map[string]string{"x": "target"}}
	d := tools.Table{}.Describe(s)
	assert.Equal(t, []tools.Effect{tools.Deletes}, d.Effects)
	assert.Equal(t, tools.FromDeclaration, d.Source)
	assert.Equal(t, tools.Target, d.Role("x"))
	table := tools.Table{"list_things": {Effects: []tools.Effect{tools.Reads}}}
	require.NoError(t, table.Validate())
	d = table.Describe(s)
	assert.True(t, d.OnlyReads())
	assert.Equal(t, tools.FromFile, d.Source)
	assert.Equal(t, tools.Target, d.Role("x"), "what the table leaves open, the declaration answers")
}

// A server's hints about its own tool never make a tool harmless that seems to change something.
func TestHintsOfServers(t *testing.T) {
	t.Parallel()
	hinted := func(name, effect string) *tools.Description {
		s := spec(name, "", "recipient", "amount")
		s.Purpose = &agent.Purpose{Hint: true, Effects: []string{effect}}
		return tools.Table{}.Describe(s)
	}
	assert.True(t, hinted("send_money", "reads").Does(tools.Pays))
	assert.True(t, hinted("send_money", "writes").Does(tools.Pays))
	assert.False(t, hinted("list_money", "writes").OnlyReads())
	assert.True(t, hinted("list_money", "reads").OnlyReads())
}

func TestWrongTables(t *testing.T) {
	t.Parallel()
	err := tools.Table{"a": {Effects: []tools.Effect{"pay"}, Records: []tools.Records{"x"}, Roles: map[string]tools.Role{"b": "payer"}}}.Validate()
	require.ErrorContains(t, err, `tool "a": unknown effect "pay": expected reads`)
	require.ErrorContains(t, err, `argument "b": unknown role "payer"`)
	require.ErrorContains(t, err, `unknown records "x"`)
}

// Names from many developers, in many words and styles, say enough without descriptions.
func TestNamesOfManyStyles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/names.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) < 3 || strings.HasPrefix(line, "#") {
			continue
		}
		var arguments []string
		roles := map[string]tools.Role{}
		for pair := range strings.FieldsSeq(parts[1]) {
			name, role, _ := strings.Cut(pair, "=")
			arguments, roles[name] = append(arguments, name), tools.Role(role)
		}
		d := tools.Table{}.Describe(spec(parts[0], "", arguments...))
		assert.Equal(t, "["+parts[2]+"]", fmt.Sprint(d.Effects), parts[0])
		for name, role := range roles {
			assert.Equal(t, role, d.Role(name), "%s %s", parts[0], name)
		}
		if len(parts) > 3 {
			assert.Equal(t, "["+parts[3]+"]", fmt.Sprint(d.Records), parts[0])
		}
	}
}

// A description says more than an ambiguous name.
func TestDescriptionsCount(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		spec    agent.ToolSpec
		records []tools.Records
	}{
		{spec("fetchMessages", "Returns all unread emails."), []tools.Records{tools.Mail}},
		{spec("fetchMessages", "Returns the emails that were sent."), []tools.Records{tools.SentMail}},
		{spec("fetchMessages", "Returns the messages of a channel."), []tools.Records{tools.Messages}},
	} {
		assert.Equal(t, tc.records, tools.Table{}.Describe(tc.spec).Records, tc.spec.Description)
	}
	list := tools.Table{}.Describe(spec("x", "Checks out products.", "y: List of product IDs to checkout"))
	assert.Equal(t, tools.Target, list.Role("y"))
	memory := tools.Table{}.Describe(spec("memory", "Your memory: text files below a folder."))
	assert.False(t, memory.Does(tools.Sends), "text is no verb there")
}

// Describing a tool never fails, and never returns unknown effects, whatever the words.
func FuzzDescribe(f *testing.F) {
	f.Add("send_money", "Sends money.", `{"type":"object","properties":{"to":{"type":["string","null"]}}}`)
	f.Add("", "", "{")
	f.Fuzz(func(t *testing.T, name, description, schema string) {
		d := tools.Table{}.Describe(agent.ToolSpec{Name: name, Description: description, Parameters: schema})
		for _, e := range d.Effects {
			assert.True(t, slices.Contains(tools.AllEffects, e))
		}
	})
}
