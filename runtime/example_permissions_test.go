package runtime_test

import (
	"context"
	"fmt"
	"log"

	"gaol/policy"
	"gaol/runtime"
)

// A program that may read the workspace, and write one folder of it.
func ExampleCreate_permissions() {
	ctx := context.Background()
	writing := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	rt, err := runtime.Create(ctx, runtime.Options{
		Permissions: policy.Permissions{FS: policy.Scope{Rules: []policy.Rule{
			{Mode: policy.Allow, Operations: []policy.Operation{"read", "readdir"}, Paths: []string{"/workspace/**"}},
			{Mode: policy.Allow, Operations: writing, Paths: []string{"/workspace/out/**"}},
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Run(ctx, `
		import fs from 'node:fs';
		fs.writeFileSync('out/report.txt', 'done');
		console.log(fs.readdirSync('out'));
		fs.writeFileSync('notes.txt', '');`, runtime.RunOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%sexit code %d\n", res.Stdout, res.ExitCode)
	for _, d := range res.Denials {
		fmt.Println(d.Scope, d.Operation, d.Target, d.Rule, d.Source)
	}
	// Output:
	// [ 'report.txt' ]
	// exit code 1
	// fs write /workspace/notes.txt fs.default stderr
}
