"""Functions of Spark's SQL that a suite of expectations may call: those that depend only on their arguments.

Left out are, of Spark's own, what calls Java or Python (`reflect`, `java_method`, user-defined functions), what shows
the session or the machine, encryption, XML (whose readers follow references), chance, and sketches nobody needs here.
What a platform adds is not here either: it may call a model or read a file.
"""

_NAMES = """
abs acos acosh add_months aggregate any any_value approx_count_distinct approx_percentile array array_agg
array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join
array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union
arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh avg base64 bigint bin binary bit_and bit_count bit_get
bit_length bit_or bit_xor bool_and bool_or boolean bround btrim cardinality cast cbrt ceil ceiling char
char_length character_length coalesce collect_list collect_set concat concat_ws contains conv convert_timezone
corr cos cosh cot count count_if covar_pop covar_samp crc32 csc cume_dist curdate current_date current_time
current_timestamp current_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub
date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees dense_rank
double e element_at elt encode endswith equal_null every exists exp explode explode_outer expm1 extract factorial
filter find_in_set first first_value flatten float floor forall format_number format_string from_csv from_json
from_unixtime from_utc_timestamp get get_json_object getbit greatest grouping grouping_id hash hex hour hypot if
ifnull ilike initcap inline inline_outer instr int is_valid_utf8 isnan isnotnull isnull json_array_length
json_object_keys kurtosis lag last last_day last_value lcase lead least left len length levenshtein like listagg
ln localtimestamp locate log log10 log1p log2 lower lpad ltrim make_date make_dt_interval make_interval make_time
make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat
map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask max
max_by md5 mean median min min_by minute mod mode month monthname months_between named_struct nanvl negate
negative next_day now nth_value ntile nullif nullifzero nvl nvl2 octet_length overlay parse_url percent_rank
percentile percentile_approx percentile_cont percentile_disc pi pmod posexplode posexplode_outer position positive
pow power product quarter quote radians rank reduce regexp regexp_count regexp_extract regexp_extract_all
regexp_instr regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round row_number rpad rtrim sec
second sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum sin sinh size skewness slice
smallint some sort_array soundex split split_part sqrt startswith std stddev stddev_pop stddev_samp str_to_map
string string_agg struct substr substring substring_index sum tan tanh time_bucket time_diff time_from_micros
time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp
timestamp_add timestamp_diff timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff
tinyint to_binary to_char to_csv to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
to_unix_timestamp to_utc_timestamp to_varchar transform transform_keys transform_values translate trim trunc
try_add try_avg try_cast try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
try_make_timestamp_ntz try_mod try_multiply try_parse_url try_subtract try_sum try_to_binary try_to_date
try_to_number try_to_time try_to_timestamp try_url_decode try_validate_utf8 typeof ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 var_pop var_samp
variance weekday weekofyear when width_bucket xxhash64 year zeroifnull zip_with
"""

FUNCTIONS: frozenset[str] = frozenset(_NAMES.split())
