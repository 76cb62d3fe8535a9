// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each of these functions sets a field that is not given.

func defaultInt32(field **int32, value int32) {
	if *field == nil {
		*field = &value
	}
}

func defaultFloat64(field **float64, value float64) {
	if *field == nil {
		*field = &value
	}
}

func defaultString(field **string, value string) {
	if *field == nil {
		*field = &value
	}
}

func defaultDuration(field **metav1.Duration, value time.Duration) {
	if *field == nil {
		*field = &metav1.Duration{Duration: value}
	}
}
