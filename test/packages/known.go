package main

// known are differences that stay, by program and way, each with a reason that a user
// would accept. A known difference that no longer shows is an error, too.
var known = map[string]string{}
