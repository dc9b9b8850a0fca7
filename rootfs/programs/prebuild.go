//go:build ignore

// Command prebuild makes the programs that `make build` embeds into gaol: see package programs.
//
//	go run rootfs/programs/prebuild.go [-arch arm64] [-cc COMPILER] [-root DIR] DIR
//
// It writes them to DIR, and DIR.json for the flag -overlay of go build. It must run in the
// repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"gaol/rootfs/programs"
)

func main() {
	m := programs.Default()
	flag.StringVar(&m.Arch, "arch", "", "processor, as Go names it (default: this machine's)")
	flag.StringVar(&m.Compiler, "cc", "", "C compiler (default: cc)")
	root := flag.String("root", "/", "folder with the files of the Debian packages catatonit and busybox-static")
	flag.Parse()
	m.Reaper, m.Busybox = filepath.Join(*root, m.Reaper), filepath.Join(*root, m.Busybox)
	if err := prebuild(&m, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "prebuild:", err)
		os.Exit(1)
	}
}

func prebuild(m *programs.Maker, args []string) error {
	if len(args) != 1 {
		return errors.New("want one folder")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	embedIn, err := filepath.Abs("rootfs/programs/prebuilt")
	if err != nil {
		return err
	}
	if _, err := os.Stat(embedIn); err != nil {
		return fmt.Errorf("this is not the repository: %w", err)
	}
	return m.Prebuild(context.Background(), dir, embedIn)
}
