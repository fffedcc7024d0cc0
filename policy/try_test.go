package policy_test
import ("testing";"os";"fmt";"path/filepath";"strings";"github.com/grapnel-go/grapnel/policy")
func TestTry(t *testing.T) {
	files,_ := filepath.Glob("testdata/seeds/*")
	for _, f := range files {
	text,_ := os.ReadFile(f)
	kind := policy.Pipelines
	if strings.Contains(f,"blueprint") { kind = policy.Blueprints }
	p, err := policy.ParseKind(kind, f, text, policy.Options{})
	fmt.Println("=====", f, err)
	if err == nil { for _, r := range p.Rules() { fmt.Printf("%+v\n", r) }
	for _, w := range p.Check() { fmt.Println(w) } }
	}
}
