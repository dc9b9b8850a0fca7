package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypeErrors: errors about the type of a value are in the file's words.
func TestTypeErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for text, want := range map[string]string{
		`{"tenant":{"memoryBytes":"1"}}`: "tenant.memoryBytes: want a whole number",
		`{"idleTimeoutMs":1.5}`:          "idleTimeoutMs: want a whole number",
		`{"images":"default"}`:           "images: want an array",
		`{"mounts":[]}`:                  "mounts: want an object",

		`{"isolations": [ "runc" , 3 ]}`:                                      "isolations[1]: want a string",
		`{"images": ["a", ["b"]]}`:                                            "images[1]: want a string",
		`{"snippets": {"anonymous": {"runs": true}}}`:                         "snippets.anonymous.runs: want a whole number",
		`{"tenants": {"uid:1": {"runs": 1}, "token:a": {"cpus": "2"}}}`:       `tenants["token:a"].cpus: want a number`,
		`{"tenants": {"uid:1": {"runs": 99999999999999999999}}}`:              `tenants["uid:1"].runs: the number is out of range`,
		`{"hostPorts": ["1", 3000]}`:                                          "hostPorts[1]: want a string",
		`{"hostPorts": ["0"]}`:                                                `hostPorts[0]: "0": want a port, or a range such as 8000-8099`,
		`{"snippets": {"anonymous": {"proxies": ["10.0.0.0/8", {}]}}}`:        "snippets.anonymous.proxies[1]: want a string",
		`{"snippets": {"anonymous": {"proxies": ["10.0.0.0/8", "gateway"]}}}`: `snippets.anonymous.proxies[1]: netip.ParsePrefix("gateway"): no '/'`,
		`{"playground": {"of": true}}`:                                        "playground.of: unknown field",
		`{"Images": []}`:                                                      "Images: unknown field",
		`{"images": [], "images": []}`:                                        "line 1, column 16: duplicate object member name",
		`{"permissions": {"network": 3}}`:                                     "permissions: network: not allow, deny or an object with rules",
		`[]`:                                                                  "want an object",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, Overrides{}); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
