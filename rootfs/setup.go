//go:build ignore

// Command setup prepares a build of gaol. It must run in the repository.
//
//	setup programs [-arch arm64] [-cc COMPILER] [-root DIR] DIR
//	setup image
//
// Setup programs makes the programs that `make build` embeds into gaol: see package programs. It writes them to DIR, and
// DIR.json for the flag -overlay of go build. Setup image builds the default image if it is missing, which `make run` does
// while it compiles gaol.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"gaol/rootfs"
	"gaol/rootfs/programs"
)

func main() {
	if err := setUp(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}

func setUp(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "image":
		store, err := rootfs.Open("")
		if err != nil {
			return err
		}
		_, err = store.Build(context.Background(), rootfs.BuildOptions{IfMissing: true, Progress: os.Stderr})
		return err
	case len(args) > 1 && args[0] == "programs":
		return makePrograms(args[1:])
	}
	return errors.New("want programs or image")
}

func makePrograms(args []string) error {
	m := programs.Default()
	flags := flag.NewFlagSet("setup programs", flag.ExitOnError)
	flags.StringVar(&m.Arch, "arch", "", "processor, as Go names it (default: this machine's)")
	flags.StringVar(&m.Compiler, "cc", "", "C compiler (default: cc)")
	root := flags.String("root", "/", "folder with the files of the Debian packages catatonit and busybox-static")
	_ = flags.Parse(args) // exits on errors
	m.Reaper, m.Busybox = filepath.Join(*root, m.Reaper), filepath.Join(*root, m.Busybox)
	if flags.NArg() != 1 {
		return errors.New("want one folder")
	}
	dir, err := filepath.Abs(flags.Arg(0))
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
