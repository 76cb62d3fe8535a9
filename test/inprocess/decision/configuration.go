// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"flag"
	"io"
	"testing"

	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	// The plugins' args, in every version.
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// klogFlags are initialized before any goroutine logs, because klog does not lock for that.
var klogFlags = func() *flag.FlagSet {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	return flags
}()

// Quiet discards the log of the scheduler until the end of the test. Goroutines of earlier tests may log at any time.
func Quiet(tb testing.TB) {
	set := func(toStderr bool, threshold string) {
		klog.LogToStderr(toStderr)
		if err := klogFlags.Set("stderrthreshold", threshold); err != nil {
			tb.Fatal(err)
		}
	}
	klog.SetOutput(io.Discard)
	set(false, "FATAL")
	tb.Cleanup(func() { set(true, "ERROR") })
}

// defaultConfiguration is the configuration of a scheduler that is started without a file.
const defaultConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
`

// configuration reads a configuration as the scheduler does: strictly, with defaults, and validated. With unpatched
// upstream the plugins' own args are validated only by their factories.
func configuration(tb testing.TB, text string) *schedulerconfig.KubeSchedulerConfiguration {
	tb.Helper()
	if text == "" {
		text = defaultConfiguration
	}
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		tb.Fatalf("want a KubeSchedulerConfiguration, got %s", version)
	}
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		tb.Fatal(err)
	}
	return config
}
