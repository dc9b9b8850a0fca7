package mcpstdio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfig checks that each client's configuration starts the command, whatever is in its path.
func TestConfig(t *testing.T) {
	c := Command{Path: `/opt/a "b" <c>'d'/gaol`, Args: []string{"mcp", "--tools", "sandbox"}, Env: map[string]string{"GAOL_SOCKET": "/x"}}
	for _, client := range Clients {
		text, err := Config(client, c)
		if err != nil {
			t.Fatal(err)
		}
		comment, body, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(comment, "#") && !strings.HasPrefix(comment, "//") {
			t.Errorf("%s: %q", client, comment)
		}
		if diff := cmp.Diff(c, parse(t, client, body)); diff != "" {
			t.Errorf("%s: %s\n%s", client, diff, body)
		}
	}
	if _, err := Config("emacs", c); err == nil || !strings.Contains(err.Error(), "claude-code, ") {
		t.Error(err)
	}
}

// parse returns the command of a configuration.
func parse(t *testing.T, client, body string) (c Command) {
	t.Helper()
	var entry struct {
		Type, Command string
		Args          []string
		Env           map[string]string
	}
	var err error
	switch client {
	case "claude-code":
		quoted := strings.TrimSuffix(strings.TrimPrefix(body, "claude mcp add-json gaol '"), "'\n")
		err = json.Unmarshal([]byte(strings.ReplaceAll(quoted, `'\''`, "'")), &entry)
	case "goose":
		for line := range strings.Lines(body) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if v := map[string]any{"cmd": &entry.Command, "args": &entry.Args, "envs": &entry.Env}[key]; v != nil {
				err = json.Unmarshal([]byte(value), v)
			}
		}
	default:
		key := map[string]string{"vscode": "servers"}[client]
		if key == "" {
			key = "mcpServers"
		}
		file := map[string]map[string]json.RawMessage{}
		if err = json.Unmarshal([]byte(body), &file); err == nil {
			err = json.Unmarshal(file[key]["gaol"], &entry)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", client, err, body)
	}
	if client == "vscode" && entry.Type != "stdio" {
		t.Errorf("type %q", entry.Type)
	}
	return Command{entry.Command, entry.Args, entry.Env}
}
