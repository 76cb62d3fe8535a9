// SPDX-License-Identifier: Apache-2.0

package framework

// ExtenderName stands for all extenders among the plugins that rejected a pod. Any event may change their answers.
const ExtenderName = "Extender"
