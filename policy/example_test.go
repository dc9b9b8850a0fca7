package policy_test

import (
	"fmt"

	"gaol/policy"
)

// One rule can be enforced, the other cannot.
func ExampleLower() {
	world := policy.World{Own: []string{"/workspace"}}
	for _, path := range []string{"/workspace/secret/**", "/workspace/*.key"} {
		p, err := policy.Parse([]byte(`{"fs": {"default": "allow", "rules": [{"mode": "deny", "paths": ["` + path + `"]}]}}`))
		if err != nil {
			fmt.Println(err)
			continue
		}
		plan, err := policy.Lower(p, world)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("hidden:", plan.Hide)
	}
	// Output:
	// hidden: [/workspace/secret/**]
	// permissions: fs.rules[0].paths[0]: "/workspace/*.key": the kernel knows folders and files, not patterns of names; nearest: /workspace/**
}
