package main

// known are differences that stay, with the reason: at most 0.2 % of the tests.
var known = map[string]string{}
