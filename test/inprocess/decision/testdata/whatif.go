// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
)

// This is compiled only with the patched tree: see scripts/stock-and-fork.sh.
func init() {
	askWhatIf = func(ctx context.Context, scheduler *scheduler.Scheduler, pod *v1.Pod) error {
		_, _, err := scheduler.Records.Sources.WhatIf(ctx, pod, true)
		return err
	}
}
