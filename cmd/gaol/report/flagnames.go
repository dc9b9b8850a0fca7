package report

import (
	"errors"
	"strings"

	"gaol/runtime"
)

// limitFlags maps fields of runtime.Limits and EvaluateOptions to flags.
var limitFlags = map[string]string{
	"Memory": "memory", "CPUs": "cpus", "CPUTime": "cpu-time", "Pids": "pids", "OpenFiles": "open-files", "Disk": "disk", "Files": "files", "Output": "max-output",
	"Heap": "heap", "MaxOutput": "max-output", "MaxLogs": "max-logs", "MaxLogLength": "max-log-length",
}

// optionFlags maps fields of runtime.Options and its relatives to flags.
var optionFlags = map[string]string{
	"AuditDenials": "--audit-denials", "Cwd": "--cwd", "Env": "--env", "Files": "--file", "Format": "--format", "Globals": "--globals", "HostPorts": "--host-port", "Hostname": "--hostname", "Isolation": "--isolation", "OCI": "--isolation", "Proxy": "--proxy",
	"Launcher": "--launcher", "Mounts": "--mount", "Name": "FILE", "NodeModules": "--node-modules", "Permissions": "--permissions",
	"Snapshot": "--snapshot", "Store": "--store",
}

// withFlagNames returns err's text with the name of the first option or limit in it
// replaced by the flag that sets it.
func withFlagNames(err error) string {
	text := err.Error()
	if o, ok := errors.AsType[*runtime.OptionError](err); ok && optionFlags[o.Option] != "" {
		text = strings.Replace(text, o.Error(), optionFlags[o.Option]+": "+o.Err.Error(), 1)
	}
	if l, ok := errors.AsType[*runtime.LimitError](err); ok && limitFlags[l.Limit] != "" {
		text = strings.Replace(text, "limit "+l.Limit+":", "--"+limitFlags[l.Limit]+":", 1)
	}
	return text
}
