module example.com/embed

go 1.26.0

require gaol v0.0.0

replace gaol => ../..
