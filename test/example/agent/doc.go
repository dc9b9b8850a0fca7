// Command agent shows how a program gives a model one tool, "run code", in which all
// other tools are functions: a loop that asks the model, evaluates the code it answers
// with, and tells it what came of that, until it answers in words.
//
// The model here is a script, so that the example needs no network: replace ask with a
// request to yours.
package main
