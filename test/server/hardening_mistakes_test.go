package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gaol/test/server/servertest"
)

// mistakes are options that no sandbox can have.
func mistakes() map[string]string {
	long := strings.Repeat("a", 256)
	return map[string]string{
		"cwd is a file":               `"cwd":"/etc/passwd"`,
		"cwd is a link":               `"cwd":"/bin"`,
		"cwd in a file":               `"cwd":"/etc/passwd/x"`,
		"cwd has a long name":         `"cwd":"/` + long + `"`,
		"cwd is deep":                 `"cwd":"` + strings.Repeat("/a", 2040) + `/` + long + `"`,
		"cwd in proc":                 `"cwd":"/proc/x"`,
		"cwd in sys":                  `"cwd":"/sys/x"`,
		"cwd in dev":                  `"cwd":"/dev/null"`,
		"cwd has a NUL":               `"cwd":"/a\u0000"`,
		"cwd is relative":             `"cwd":"a"`,
		"file in a link":              `"files":{"/bin/x":"1"}`,
		"file is a folder":            `"files":{"/workspace":"1"}`,
		"file is a folder of image":   `"files":{"/usr/lib":"1"}`,
		"file is a link of the image": `"files":{"/bin":"1"}`,
		"file in a file":              `"files":{"/etc/passwd/x":"1"}`,
		"file has a long name":        `"files":{"/workspace/` + long + `":"1"}`,
		"folder has a long name":      `"files":{"/workspace/` + long + `/x":"1"}`,
		"file is the root":            `"files":{"/":"1"}`,
		"file is in tmp":              `"files":{"/tmp":"1"}`,
		"file is in shared memory":    `"files":{"/dev/shm":"1"}`,
		"file in itself":              `"files":{"/workspace/a":"1","/workspace/a/b":"1"}`,
		"file in proc":                `"files":{"/proc/x":"1"}`,
		"file has a NUL":              `"files":{"/workspace/a\u0000":"1"}`,
		"negative limit":              `"limits":{"memoryBytes":-8192}`,
		"huge limit":                  `"limits":{"memoryBytes":9223372036854775807}`,
		"host name":                   `"hostname":"-"`,
		"variable":                    `"env":{"A=B":"1"}`,
		"variable with a NUL":         `"env":{"A":"\u0000"}`,
		"many variables":              `"env":{"A":"` + strings.Repeat("x", 300<<10) + `"}`,
		"fraction":                    `"limits":{"memoryBytes":1.5}`,
		"text":                        `"limits":{"pids":"1"}`,
		"rule":                        `"permissions":{"network":{"rules":[{"mode":"allow","patterns":["x"]}]}}`,
		"scope":                       `"permissions":{"nework":"allow"}`,
		"hidden cwd":                  `"cwd":"/x","permissions":{"fs":{"default":"deny"}}`,
	}
}

// TestMistakes: options that no sandbox can have are the caller's mistakes, whichever the request and the protocol are,
// and no line of the log.
func TestMistakes(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, user)
	socket := openSession(t, s)
	for name, fields := range mistakes() {
		for path, body := range map[string]string{
			"/v1/sandboxes": `{` + fields + `}`, "/v1/run": `{"code":"1",` + fields + `}`, "/v1/evaluate": `{"code":"1",` + fields + `}`,
		} {
			res := servertest.Send(t, c, "POST", path, body)
			if name == "many variables" && res.Status == http.StatusCreated {
				continue // the limit is that of a run
			}
			if res.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s, %s: %d %.300s", name, path, res.Status, res.Body)
				continue
			}
			if text := string(res.Body); strings.Contains(text, "Go ") || strings.Contains(text, "struct") || strings.Contains(text, "-8192 PiB") {
				t.Errorf("%s, %s: %s", name, path, text)
			}
		}
		if detail := socket.request(t, `{"method":"run","params":{"code":"1",`+fields+`}}`); detail == "" {
			t.Errorf("%s: a session has no detail", name)
		}
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has\n%.4000s", text)
	}
}

// TestAcceptedSpellings: other spellings of valid values are accepted.
func TestAcceptedSpellings(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, user)
	for _, body := range []string{
		`{"code":"1","timeoutMs":60000.0}`, `{"code":"1","timeoutMs":6e4}`, `{"code":"1","permissions":null}`,
		`{"code":"1","limits":{"pids":64.0}}`,
	} {
		for _, kind := range []string{"Application/JSON", "application/json; charset=UTF-8", "APPLICATION/json"} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol/v1/run", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", kind)
			res := servertest.Do(t, c, r)
			var run struct{ ExitCode *int }
			if json.Unmarshal(res.Body, &run) != nil || run.ExitCode == nil || *run.ExitCode != 0 {
				t.Errorf("%s, %s: %d %s", body, kind, res.Status, res.Body)
			}
		}
	}
}

// TestDeepFolder: the time to make folders does not grow with the cube of their depth.
func TestDeepFolder(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	deep := strings.Repeat("/a", 1200) // took minutes
	servertest.Send(t, s.Client(t, user), "POST", "/v1/sandboxes", `{"cwd":"`+deep+`"}`).Want(t, http.StatusCreated)
}
