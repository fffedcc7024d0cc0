//go:build unix

package parts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Browser is a Chromium with one page, without a window. Tests drive it with the Chrome DevTools Protocol over a pipe.
type Browser struct {
	t       testing.TB
	in      io.Writer
	session string

	mu     sync.Mutex
	last   int
	wait   map[int]chan browserReply
	errors []string
}

type browserReply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// browserPatience is how long a command may take on a busy machine.
const browserPatience = 2 * time.Minute

// Chromium starts a browser that ends with the test. With -short, it skips the test.
func Chromium(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("in a browser: run the test without -short")
	}
	path := Command(t, "chromium", "install Debian's package chromium")
	fromHere, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, toHere, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "chromium") //nolint:usetesting // the cleanup of t.TempDir fails if Chromium still writes to it
	if err != nil {
		t.Fatal(err)
	}
	//nolint:gosec,noctx // the command is one of the test parts; the cleanup ends it, after the test's context
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
		"--user-data-dir="+filepath.Join(dir, "profile"), "about:blank")
	cmd.ExtraFiles = []*os.File{fromHere, toHere} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = fromHere.Close(), toHere.Close()
	b := &Browser{t: t, in: toBrowser, wait: map[int]chan browserReply{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(fromBrowser)
	}()
	t.Cleanup(func() {
		_ = toBrowser.Close() // it ends then
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // only its end matters
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = fromBrowser.Close()
		<-read
		_ = os.RemoveAll(dir) // a process of the browser may still write to it
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.Do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.Do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Do(domain+".enable", nil, nil)
	}
	return b
}

// read passes replies on, and notes what the page complains about.
func (b *Browser) read(from io.Reader) {
	for in := bufio.NewReader(from); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var r browserReply
		if json.Unmarshal(text[:len(text)-1], &r) != nil {
			continue
		}
		b.mu.Lock()
		if waiting := b.wait[r.ID]; waiting != nil {
			delete(b.wait, r.ID)
			waiting <- r
		}
		if r.Method == "Runtime.exceptionThrown" || r.Method == "Log.entryAdded" || r.Method == "Runtime.consoleAPICalled" {
			b.errors = append(b.errors, r.Method+" "+string(r.Params))
		}
		b.mu.Unlock()
	}
}

// Do sends a command of the protocol and reads its result into a value, unless that is nil.
func (b *Browser) Do(method string, params, into any) {
	b.t.Helper()
	if err := b.try(method, params, into); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Browser) try(method string, params, into any) error {
	b.mu.Lock()
	b.last++
	id, reply := b.last, make(chan browserReply, 1)
	b.wait[id] = reply
	b.mu.Unlock()
	command := map[string]any{"id": id, "method": method, "params": params}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r := <-reply:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if into != nil {
			return json.Unmarshal(r.Result, into)
		}
		return nil
	case <-time.After(browserPatience):
		return fmt.Errorf("%s: the browser does not answer", method)
	}
}

// Size sets the size of the page, and whether the person prefers dark colours.
func (b *Browser) Size(width, height int, dark bool) {
	b.t.Helper()
	b.Do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	theme := "light"
	if dark {
		theme = "dark"
	}
	b.Do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": theme}}}, nil)
}

// Open opens an address and waits until the page is loaded.
func (b *Browser) Open(address string) {
	b.t.Helper()
	var to struct {
		ErrorText string `json:"errorText"`
	}
	b.Do("Page.navigate", map[string]any{"url": address}, &to)
	if to.ErrorText != "" {
		b.t.Fatalf("opening %s: %s", address, to.ErrorText)
	}
	b.Wait(`document.readyState === "complete"`)
}

// Eval evaluates an expression in the page, and waits for the result if it is a promise.
func (b *Browser) Eval(expression string, into any) {
	b.t.Helper()
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.Do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	if len(out.Exception) > 0 {
		b.t.Fatalf("%.200s: %s", expression, out.Exception)
	}
	if into != nil {
		if err := json.Unmarshal(out.Result.Value, into); err != nil {
			b.t.Fatalf("%.200s: %v: %s", expression, err, out.Result.Value)
		}
	}
}

// Wait waits until a page has loaded and an expression is true, also while the page changes to another.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	again, over := time.NewTicker(20*time.Millisecond), time.After(browserPatience)
	defer again.Stop()
	for {
		var out struct {
			Result struct {
				Value any `json:"value"`
			} `json:"result"`
		}
		loaded := `document.readyState === "complete" && (` + expression + ")"
		err := b.try("Runtime.evaluate", map[string]any{"expression": loaded, "returnByValue": true}, &out)
		if err == nil && out.Result.Value == true {
			return
		}
		select {
		case <-again.C:
		case <-over:
			b.t.Fatalf("the page never became %s: %v %v", expression, out.Result.Value, err)
		}
	}
}

// Errors returns what the page wrote to the console since the last call, such as violations of its policy.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.errors
	b.errors = nil
	return all
}

// Axe returns what axe-core finds wrong with the accessibility of the page, one line each.
func (b *Browser) Axe() (findings []string) {
	b.t.Helper()
	path := filepath.Join(Root(), "tools", "npm", "node_modules", "axe-core", "axe.min.js")
	script, err := os.ReadFile(path)
	if err != nil || partsHidden() {
		Missing(b.t, "the npm package axe-core is not installed: install Node.js with npm and run make parts")
	}
	b.Eval(string(script)+"\n;null", nil)
	b.Eval(`axe.run({resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(
		n => v.id + ": " + n.html.slice(0, 200) + " " + (n.any[0]?.message ?? ""))))`, &findings)
	return findings
}
