//go:build externalgrpc

package inprocess

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"k8s.io/autoscaler/cluster-autoscaler/config"
	"k8s.io/autoscaler/cluster-autoscaler/config/flags"
	"k8s.io/klog/v2"
)

// shipped holds CA's options as set by deploy/ca/values.yaml, which contains the values that we ship for CA's chart.
var shipped config.AutoscalingOptions

func TestMain(m *testing.M) {
	logs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logs)
	_ = logs.Set("logtostderr", "false") // CA logs each loop; KLOG=4 shows it
	_ = logs.Set("stderrthreshold", "FATAL")
	if level := os.Getenv("KLOG"); level != "" {
		_ = logs.Set("logtostderr", "true")
		_ = logs.Set("v", level)
	} else {
		klog.SetOutput(nothing{})
	}
	if err := ship("../../../deploy/ca/values.yaml"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shipped = flags.AutoscalingOptions() // CA reads its flags only once
	os.Exit(m.Run())
}

type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// ship sets CA's flags in the same way as CA's chart does with the values file. The chart removes the suffix "_1" of a
// key.
func ship(values string) error {
	raw, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	var file struct {
		ExtraArgs map[string]any `json:"extraArgs"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return fmt.Errorf("%s: %w", values, err)
	}
	if len(file.ExtraArgs) == 0 {
		return fmt.Errorf("%s has no extraArgs", values)
	}
	suffix := regexp.MustCompile(`_\d+$`)
	for name, value := range file.ExtraArgs {
		if err := flag.Set(suffix.ReplaceAllString(name, ""), fmt.Sprint(value)); err != nil {
			return fmt.Errorf("%s: extraArgs: %s: %w", values, name, err)
		}
	}
	return nil
}
