module github.com/grapnel-go/grapnel/bench/contenders/fantasy

go 1.26.5

replace github.com/grapnel-go/grapnel/bench => ../../

require (
	charm.land/fantasy v0.38.1
	github.com/grapnel-go/grapnel/bench v0.0.0-00010101000000-000000000000
)

require (
	github.com/charmbracelet/x/exp/slice v0.0.0-20250904123553-b4e2667e5ad5 // indirect
	github.com/go-json-experiment/json v0.0.0-20260623181947-01eb4420fa68 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/kaptinlin/jsonpointer v0.4.27 // indirect
	github.com/kaptinlin/jsonschema v0.9.3 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)
