// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/clock"
)

// NewWithClock is New with a clock of the test's own.
func NewWithClock(args *config.ExtensionPointLoggerArgs, clock clock.PassiveClock) (framework.Plugin, error) {
	log, err := newCallLog(args, clock)
	if err != nil {
		return nil, err
	}
	return newPlugin(args, log), nil
}
