package mcpstdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Clients are the clients that Config knows.
var Clients = []string{"claude-code", "claude-desktop", "cursor", "vscode", "goose"}

// Command is how a client starts the proxy.
type Command struct {
	Path string
	Args []string
	Env  map[string]string
}

// Config returns the configuration of a client that starts c, and where to paste it.
func Config(client string, c Command) (text string, err error) {
	entry := map[string]any{"command": c.Path, "args": c.Args}
	if len(c.Env) > 0 {
		entry["env"] = c.Env
	}
	switch client {
	case "claude-code":
		return "# Run this command:\nclaude mcp add-json gaol " + quote(compact(entry)) + "\n", nil
	case "claude-desktop":
		return "// claude_desktop_config.json (Settings, Developer, Edit Config)\n" + indented(map[string]any{"mcpServers": map[string]any{"gaol": entry}}), nil
	case "cursor":
		return "// ~/.cursor/mcp.json, or .cursor/mcp.json in a project\n" + indented(map[string]any{"mcpServers": map[string]any{"gaol": entry}}), nil
	case "vscode":
		entry["type"] = "stdio"
		return "// .vscode/mcp.json, or the command MCP: Open User Configuration\n" + indented(map[string]any{"servers": map[string]any{"gaol": entry}}), nil
	case "goose":
		return goose(c), nil
	}
	return "", fmt.Errorf("--config %q: want one of %s", client, strings.Join(Clients, ", "))
}

// goose returns YAML. Strings of JSON are strings of YAML, too.
func goose(c Command) string {
	env := c.Env
	if env == nil {
		env = map[string]string{}
	}
	return fmt.Sprintf(`# ~/.config/goose/config.yaml
extensions:
  gaol:
    enabled: true
    type: stdio
    name: gaol
    cmd: %s
    args: %s
    envs: %s
    timeout: 300
`, compact(c.Path), compact(c.Args), compact(env))
}

func compact(v any) string { return strings.TrimSpace(encode(v, "")) }

func indented(v any) string { return encode(v, "  ") }

func encode(v any, indent string) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and maps of them have JSON
	}
	return text.String()
}

// quote quotes a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
