package flags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/runtime/client"
)

// serverDefault is the value of --server that means the socket of [client.Socket].
const serverDefault = "default"

// AddServer defines --server, the socket or URL of a gaol server. Usage is the purpose of the server.
func AddServer(cmd *cobra.Command, server *string, usage string) {
	usage += ": its `SOCKET`, its URL, for which $GAOL_TOKEN is the token, or " + serverDefault + " for $GAOL_SOCKET or else " + client.DefaultSocket
	cmd.Flags().Func("server", usage, func(s string) error {
		switch {
		case s == "" || strings.HasPrefix(s, "-"): // like a flag: the value is missing
			return errors.New("want a socket, a URL, or " + serverDefault)
		case s == serverDefault:
			s = client.Socket()
		}
		*server = s
		return nil
	})
	_ = cmd.MarkFlagFilename("server", "sock") // it exists
}

// FindServer returns the socket of a server for users without root, which a local sandbox needs.
func FindServer() string {
	if info, err := os.Stat(client.Socket()); os.Geteuid() == 0 || err != nil || info.Mode().Type() != fs.ModeSocket {
		return ""
	}
	return client.Socket()
}

// NotOnServer are flags that servers do not have: they need files or ports of the host, or are the operator's to choose.
var NotOnServer = []string{"with-folder", "mount", "node-modules", "publish", "save", "store", "launcher", "unix-sockets", "allow-degraded", "audit-denials", "proxy", "proxy-names", "heap"}

// RejectOnServer rejects flags that servers lack.
func RejectOnServer(set *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := set.Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s is not available on a server", name)
		}
	}
	return nil
}
